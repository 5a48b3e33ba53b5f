"""Epsilon at a delta of a Rényi divergence at one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.contract import DELTA, Accountant, Answer, choice, number
from p2pdp.privacy.renyi import SIMPLE, TIGHT, epsilon_of

_SOURCES: Final = {
    SIMPLE: "Mironov 2017, Proposition 3",
    TIGHT: "Canonne, Kamath and Steinke 2020, Proposition 12",
}


def _answer(inputs: Mapping[str, Any]) -> Answer:
    epsilon = epsilon_of(inputs["alpha"], inputs["rdp"], inputs["delta"], inputs["conversion"])
    assumptions = ("rdp bounds the Rényi divergence of order alpha in both directions",)
    return Answer({"epsilon": epsilon}, True, assumptions, _SOURCES[inputs["conversion"]])


ACCOUNTANT: Final = Accountant(
    "epsilon at a delta from a Rényi divergence of one order",
    (
        number("alpha", "order of the divergence", 1.0, 1e12, is_open=True),
        number("rdp", "the divergence", 0.0, 1e12),
        DELTA,
        choice("conversion", "which theorem converts", _SOURCES, default=TIGHT),
    ),
    _answer,
)
