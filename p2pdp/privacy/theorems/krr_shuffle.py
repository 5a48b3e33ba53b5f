"""Shuffled reports of k-ary randomized response, by their privacy blanket (`privacy/shuffle/krr.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.shuffle.krr import krr_shuffle
from p2pdp.privacy.theorems.clones import UNIFORM


def _answer(inputs: Mapping[str, Any]) -> Answer:
    lower, upper = krr_shuffle(inputs["epsilon0"], inputs["categories"], inputs["n"], inputs["delta"])
    assumptions = (UNIFORM, "upper holds for any values of the others, lower is told for some values of theirs")
    return Answer({"lower": lower, "upper": upper}, True, assumptions, "Balle, Bell, Gascon and Nissim 2019")


ACCOUNTANT: Final = Accountant(
    "epsilon of one of n shuffled reports of randomized response",
    (
        number("epsilon0", "epsilon of one report", 1e-6, 100.0),
        whole("categories", "categories that a report may name, L", 2, 1_000_000),
        whole("n", "reports", 1, 10_000_000),
        DELTA,
    ),
    _answer,
)
