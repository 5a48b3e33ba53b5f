from __future__ import annotations

import math

import pytest

from p2pdp.experiments.contract import compared, holds, unknown


@pytest.mark.parametrize(
    ("ours", "paper", "terms", "verdict"),
    [
        (5.871, 5.87, {"absolute": 0.005}, "agrees"),
        (5.876, 5.87, {"absolute": 0.005}, "differs"),
        (104.0, 100.0, {"relative": 0.05}, "agrees"),
        (94.0, 100.0, {"relative": 0.05}, "differs"),
        (math.inf, 1.0, {"relative": 0.5}, "differs"),
        (1.0, 1.0, {}, "agrees"),
    ],
)
def test_verdicts_follow_from_numbers(ours: float, paper: float, terms: dict[str, float], verdict: str) -> None:
    found = compared("a", ours, paper, "reason", **terms)
    assert found.verdict == verdict
    assert found.why.startswith("within")
    assert found.why.endswith("reason")


def test_statements_hold_or_not_and_some_things_are_not_known() -> None:
    assert holds("a", 1.0, '"b"', true=True, why="c").verdict == "agrees"
    assert holds("a", 1.0, '"b"', true=False, why="c").verdict == "differs"
    assert unknown("a", 1.0, "no number is printed").paper is None
