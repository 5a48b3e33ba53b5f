"""Randomized response over L categories: the truth, or with probability gamma a uniform category.

Guarantee: `gamma_of` gives at most the epsilon asked for and `epsilon_of` is rounded up,
so `epsilon_of(gamma_of(epsilon, L), L) <= epsilon`.

The histogram paper prints gamma the other way round (guide/accounting.md, section 2); here gamma
is always the probability of a uniform answer, gamma = L / (e^epsilon + L - 1).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import positive, whole

_EPSILON_MAX: Final = 700.0  # e^epsilon must stay a float
_ULP: Final = 2.0**-52


def gamma_of(epsilon: float, categories: int) -> float:
    """Return the probability of a uniform answer that gives epsilon, rounded up."""
    whole("The number of categories", categories, 2)
    if positive("epsilon", epsilon) > _EPSILON_MAX:
        raise UsageError(f"epsilon must be at most {_EPSILON_MAX:g} for randomized response.")
    # A relative step x of gamma lowers epsilon by at least x; the margin covers the rounding of both directions.
    gamma = categories / (math.expm1(epsilon) + categories) * (1.0 + (8.0 + 8.0 * epsilon) * _ULP)
    if gamma >= 1.0:
        raise UsageError("epsilon is too small: every answer would be uniform and the result empty.")
    return gamma


def epsilon_of(gamma: float, categories: int) -> float:
    """Return pure epsilon of one answer, ln(1 + L (1 - gamma) / gamma), rounded up."""
    whole("The number of categories", categories, 2)
    _check_gamma(gamma)
    return math.log1p(categories * (1.0 - gamma) / gamma) * (1.0 + 4.0 * _ULP)


def estimate(tally: npt.ArrayLike, reports: int, gamma: float, dummies: int = 0) -> Floats:
    """Return unbiased counts from a tally of randomized answers and uniform dummies.

    (tally_i - (gamma * reports + dummies) / L) / (1 - gamma), guide/accounting.md, section 2. The
    estimates may be negative: cutting them off would bias sums over categories.
    """
    counts = np.asarray(tally)
    if counts.ndim != 1 or len(counts) < 2 or counts.dtype.kind not in "iu":
        raise UsageError("A tally must be a list of whole numbers, one for each of at least 2 categories.")
    _check_amounts(reports, gamma, dummies)
    if counts.min() < 0 or int(counts.sum()) != reports + dummies:
        raise UsageError("A tally must have one entry for each report and each dummy.")
    expected_uniform = (gamma * reports + dummies) / len(counts)
    return np.asarray((counts - expected_uniform) / (1.0 - gamma), dtype=np.float64)


def standard_error(estimates: npt.ArrayLike, reports: int, gamma: float, dummies: int = 0) -> Floats:
    """Return the standard error of each estimated count, with the estimate in place of the true count h.

    Var tally_i = h p1 (1 - p1) + (reports - h) p0 (1 - p0) + dummies (1/L)(1 - 1/L), where p1 and p0
    are the chances that an answer is i when the truth is i and when it is not.
    """
    counts = np.asarray(estimates, dtype=np.float64)
    if counts.ndim != 1 or len(counts) < 2 or not np.all(np.isfinite(counts)):
        raise UsageError("Estimates must be a list of finite numbers, one for each of at least 2 categories.")
    _check_amounts(reports, gamma, dummies)
    share = 1.0 / len(counts)
    held = np.clip(counts, 0.0, float(reports))
    chance_other = gamma * share
    chance_same = 1.0 - gamma + chance_other
    variance = (
        held * chance_same * (1.0 - chance_same)
        + (reports - held) * chance_other * (1.0 - chance_other)
        + dummies * share * (1.0 - share)
    )
    return np.asarray(np.sqrt(variance) / (1.0 - gamma), dtype=np.float64)


def _check_gamma(gamma: float) -> None:
    if not 0.0 < gamma <= 1.0:
        raise UsageError("gamma must be a probability above 0.")


def _check_amounts(reports: int, gamma: float, dummies: int) -> None:
    _check_gamma(gamma)
    if gamma == 1.0:
        raise UsageError("gamma must be below 1: uniform answers tell nothing about the counts.")
    whole("The number of reports", reports, 0)
    whole("The number of dummies", dummies, 0)
