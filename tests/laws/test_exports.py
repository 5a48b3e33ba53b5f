"""The public names of p2pdp are exactly this list, and each can be had."""

from __future__ import annotations

import inspect

import pytest

import p2pdp
from p2pdp.core import errors
from tests.support.sources import TOP

PUBLIC = [
    "Examples",
    "Guarantees",
    "NotReady",
    "Objective",
    "P2pdpError",
    "Refused",
    "RunFailed",
    "Spec",
    "UsageError",
    "VerificationFailed",
    "__version__",
    "account",
    "attack",
    "attack_async",
    "audit",
    "audit_async",
    "export",
    "export_async",
    "keygen",
    "load_spec",
    "load_state_dict",
    "plan",
    "plan_async",
    "resume",
    "resume_async",
    "run",
    "run_async",
    "simulate",
    "simulate_async",
    "spec",
    "sweep",
    "sweep_async",
    "torch_objective",
    "verify",
    "verify_async",
    "views",
]


def test_the_public_names_are_exactly_these() -> None:
    assert p2pdp.__all__ == dir(p2pdp) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_can_be_had_and_is_documented(name: str) -> None:
    value = getattr(p2pdp, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_every_error_of_ours_is_public() -> None:
    ours = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert ours <= set(PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulated'"):
        getattr(p2pdp, "simulated")  # noqa: B009 - the type checker would refuse the plain attribute


def test_no_room_has_the_name_of_a_function() -> None:
    """Importing a room sets an attribute of the package, which would hide the function."""
    rooms = {place.stem for place in (TOP / "p2pdp").iterdir()}
    assert rooms & set(PUBLIC) == set()
