"""Shuffling by clones: epsilon of one of n shuffled reports of any local randomizer (`privacy/shuffle/krr.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.shuffle.krr import clones

UNIFORM: Final = "the reports are put in a uniformly random order before anybody sees them"
PURE: Final = "every report is purely epsilon0-private, without a delta"


def _answer(inputs: Mapping[str, Any]) -> Answer:
    lower, upper = clones(inputs["epsilon0"], inputs["n"], inputs["delta"])
    assumptions = (UNIFORM, PURE, "lower and upper enclose the value of an upper bound, not what is really told")
    return Answer({"lower": lower, "upper": upper}, True, assumptions, "Feldman, McMillan and Talwar 2021, Theorem 3.1")


ACCOUNTANT: Final = Accountant(
    "epsilon of one of n shuffled reports, whatever their randomizer",
    (
        number("epsilon0", "epsilon of one report", 1e-6, 100.0),
        whole("n", "reports", 1, 10_000_000),
        DELTA,
    ),
    _answer,
)
