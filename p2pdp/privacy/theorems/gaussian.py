"""The exact curve of Gaussian noise: epsilon of a mu at a delta [BW18, Theorem 8]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.rounding import ratio_upper
from p2pdp.privacy.contract import DELTA, Accountant, Answer, number

CONTINUOUS: Final = "noise is drawn from the continuous normal distribution"


def _answer(inputs: Mapping[str, Any]) -> Answer:
    mu, sigma = inputs["mu"], inputs["sigma"]
    if (mu is None) == (sigma is None):
        raise UsageError("mu: give either mu or sigma")
    if mu is None:
        mu = ratio_upper(1.0, sigma)
    outputs = {"epsilon": gaussian.epsilon_of(inputs["delta"], mu), "mu": mu}
    return Answer(outputs, True, (CONTINUOUS, "sigma is that of sensitivity 1"), "Balle and Wang 2018, Theorem 8")


ACCOUNTANT: Final = Accountant(
    "epsilon of Gaussian noise at a delta, by its exact curve",
    (
        number("mu", "sensitivity divided by sigma", 0.0, 1e6, optional=True),
        number("sigma", "standard deviation for sensitivity 1, instead of mu", 1e-6, 1e300, optional=True),
        DELTA,
    ),
    _answer,
)
