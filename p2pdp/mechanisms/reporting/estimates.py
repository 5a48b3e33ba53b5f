"""Estimates counts of categories, or means, over all users' values from reports, with standard errors.

`of_all` is for the protocol that hands every report over: weights add up to an unbiased sum of the values, whatever the
walk. Values are fixed; the error is that of randomization, estimated by sum w^2 - sum x^2, and at least what the
reports vary by whatever their values: where nobody of few named a category, sum w^2 says too little.

`of_single` is for the protocol in which each user sends one report, chosen uniformly of those it holds, or a dummy
where it holds none [LTT22, Algorithm 2]. The curator cannot tell dummies apart, but knows how many to expect, D,
and their variance V (`topology/report_walks/matrix.py`). With n - D of n reports chosen, all alike likely,

    n (sum of w - D dummy mean) / (n - D)

is unbiased for the sum of the values: that takes walks that have mixed, or a graph on which all users are alike.
Its error adds to the randomization that of the choice of n - D of n values, and that of the number of dummies:

    V(sum of w) = sum (w - mean)^2 - (n - D)^2 S^2 / n - (D (n - D) / n - V) (mean value - dummy mean)^2,

S^2 being the variance of the values: the first term is that of independent choices, which these are not. Of few
reports it may come out too small; it is not less than that of the randomization alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.reporting.contract import Randomizer

_CHUNK: Final = 1 << 22  # numbers at a time


@dataclass(frozen=True, slots=True)
class Estimated:
    """Counts or means and their standard errors, one number for each output."""

    value: Floats
    standard_error: Floats


def of_all(randomizer: Randomizer, reports: Ints) -> Estimated:
    """Estimate counts over all reports that arrived, or their mean."""
    return _of_all(randomizer, _checked(randomizer, reports), *_sums(randomizer, reports))


def _of_all(randomizer: Randomizer, count: int, sums: Floats, squares: Floats) -> Estimated:
    variance = squares - randomizer.value_squares(sums, squares, float(count))
    error = np.sqrt(np.maximum(variance, count * randomizer.least_variance))
    scale = 1.0 if randomizer.counted else 1.0 / count
    return Estimated(sums * scale, error * scale)


def of_single(randomizer: Randomizer, reports: Ints, dummies: float, dummies_variance: float) -> Estimated:
    """Estimate counts or means over all users from one report of each, of which so many are expected to be dummies."""
    n = _checked(randomizer, reports)
    if not (0.0 <= dummies < n and dummies_variance >= 0.0):
        raise UsageError("The expected number of dummies is at least 0 and below the number of reports.")
    return _of_single(randomizer, n, dummies, dummies_variance, *_sums(randomizer, reports))


def _of_single(
    randomizer: Randomizer, n: int, dummies: float, dummies_variance: float, sums: Floats, squares: Floats
) -> Estimated:
    mean, square = randomizer.dummy_moments
    real = n - dummies
    total = (sums - dummies * mean) * (n / real)
    value_squares = randomizer.value_squares(total, (squares - dummies * square) * (n / real), float(n))
    spread = np.maximum(value_squares / n - (total / n) ** 2, 0.0)
    overlap = max(0.0, dummies * real / n - dummies_variance)
    variance = squares - sums**2 / n - real**2 / n * spread - overlap * (total / n - mean) ** 2
    randomized = squares - real / n * value_squares - dummies * mean**2
    error = np.sqrt(np.maximum(np.maximum(variance, randomized), n * randomizer.least_variance)) * (n / real)
    scale = 1.0 if randomizer.counted else 1.0 / n
    return Estimated(total * scale, error * scale)


def expected(randomizer: Randomizer, n: int, dummies: tuple[float, float] | None = None) -> Estimated:
    """Return what estimates come to before any report, whatever users' values are: for their standard errors.

    `dummies` are their expected number and its variance, where each user hands in one report.
    """
    mean, square = randomizer.typical_moments
    if dummies is None:
        return _of_all(randomizer, n, n * mean, n * square)
    real = n - dummies[0]
    dummy_mean, dummy_square = randomizer.dummy_moments
    sums, squares = real * mean + dummies[0] * dummy_mean, real * square + dummies[0] * dummy_square
    return _of_single(randomizer, n, *dummies, sums, squares)


def _sums(randomizer: Randomizer, reports: Ints) -> tuple[Floats, Floats]:
    sums, squares = np.zeros(randomizer.outputs), np.zeros(randomizer.outputs)
    rows = max(1, _CHUNK // randomizer.outputs)
    for first in range(0, len(reports), rows):
        weights = randomizer.weights(reports[first : first + rows])
        sums += weights.sum(axis=0)
        squares += np.einsum("ij,ij->j", weights, weights)
    return sums, squares


def _checked(randomizer: Randomizer, reports: Ints) -> int:
    if reports.ndim != 2 or reports.shape[1] != randomizer.width or not len(reports):
        raise UsageError("An estimate needs one report at least, each with as many numbers as its randomizer gives.")
    return len(reports)
