from __future__ import annotations

import inspect

import pytest

from p2pdp.core import errors
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed

ERRORS = [value for _, value in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError, 2), (RunFailed, 3), (VerificationFailed, 4), (Refused, 5), (NotReady, 6)],
)
def test_exit_codes_are_those_of_the_contract(error: type[P2pdpError], code: int) -> None:
    assert error.exit_code == code


def test_each_error_has_one_root_a_code_of_its_own_and_an_explanation() -> None:
    assert all(issubclass(error, P2pdpError) for error in ERRORS)
    assert len({error.exit_code for error in ERRORS}) == len(ERRORS)
    assert 0 not in {error.exit_code for error in ERRORS}
    assert all(error.__dict__["__doc__"] for error in ERRORS)


def test_the_text_is_the_users_message_as_it_stands() -> None:
    assert str(UsageError("[walk] laps: missing.")) == "[walk] laps: missing."
