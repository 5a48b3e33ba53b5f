"""The least Gaussian noise for an epsilon and a delta, by the exact curve [BW18]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.rounding import ratio_upper
from p2pdp.privacy.contract import DELTA, LARGEST_BELOW_1, Accountant, Answer, number
from p2pdp.privacy.theorems.gaussian import CONTINUOUS


def _answer(inputs: Mapping[str, Any]) -> Answer:
    mu = gaussian.mu_of_curve(inputs["epsilon"], inputs["delta"])
    sigma = ratio_upper(inputs["sensitivity"], mu)
    return Answer({"sigma": sigma, "mu": mu}, True, (CONTINUOUS,), "Balle and Wang 2018, Theorem 8 and Algorithm 1")


ACCOUNTANT: Final = Accountant(
    "the least standard deviation of Gaussian noise for an epsilon and a delta",
    (
        number("epsilon", "the epsilon to be met", 0.0, 1e6),
        number("delta", DELTA.help, 1e-300, LARGEST_BELOW_1),
        number("sensitivity", "how far one user's change moves the value", 1e-100, 1e100, default=1.0),
    ),
    _answer,
)
