"""What is said of a run that ends without a result."""

from __future__ import annotations

import pytest

from p2pdp.core.endings import DISPUTE, STANDSTILL, TOO_FEW, WORD_MAX, Complaint, Stop, Stopped, why_stopped
from p2pdp.core.fields import check_of
from p2pdp.core.ids import CURATOR


@pytest.mark.parametrize(
    ("reason", "concerned", "named"),
    [
        (TOO_FEW, [[3]], "user 3 was put out"),
        (TOO_FEW, [[1], [3]], "users 1 and 3 were put out"),
        (DISPUTE, [[2, 3], [CURATOR, 4]], "user 2 refused what user 3 sent; curator refused what user 4 sent"),
        (STANDSTILL, [[3, 1, 2]], "users 1 and 2 waited for user 3"),
        (STANDSTILL, [[3, CURATOR, 2]], "curator and user 2 waited for user 3"),
    ],
)
def test_a_sentence_names_who_is_concerned_and_only_them(reason: str, concerned: list[list[int]], named: str) -> None:
    assert named in why_stopped(reason, concerned)
    assert why_stopped(reason) == why_stopped(reason, concerned).partition(":")[0], "participants hear the reason alone"
    assert not any(letter.isdigit() for letter in why_stopped(reason))


def test_what_bootstrap_might_say_of_its_own_is_not_repeated() -> None:
    assert why_stopped("<script>") == "the run was stopped by bootstrap"


def test_fields_are_bounded() -> None:
    assert check_of(Complaint)(Complaint(-2, "x" * WORD_MAX))
    assert not check_of(Complaint)(Complaint(0, "x" * (WORD_MAX + 1)))
    assert not check_of(Complaint)(Complaint(-3, "x"))
    assert not check_of(Stop)(Stop(b"x"))  # type: ignore[arg-type]
    assert check_of(Stopped)(Stopped(TOO_FEW, [[0], [1, -2]]))
