"""Epsilon, [lower, upper], of one of n shuffled reports of k-ary randomized response.

The upper end is the privacy blanket (`blanket.py`) and holds for any data of the others; the lower end is what is
really told for some data of theirs: all at a third value, or for two categories the worst of none, half and all at u's.
Small shuffles are summed outcome by outcome; large ones by `excess.py`, where the lower end merges all categories
but u's two, which costs it a few parts in ten thousand.

With `kappa` below 1 each other report is shuffled with u's with that chance only, and otherwise revealed (an upper
end for network shuffling, guide/accounting.md, section 4); the lower end does not use it.

*Clones* are for any local randomizer [FMT21, Theorem 3.1]: each other report is, with probability e^-epsilon_0, as good
as one of u's two, chosen by a coin. So the shuffle tells at most what the pair
(A + D, C - A + 1 - D) tells against the same with D flipped, where C ~ Bin(n - 1, e^-epsilon_0), A ~ Bin(C, 1/2) and
D ~ Bern(e^epsilon_0 / (e^epsilon_0 + 1)). That is the blanket for two categories with another chance of
being uniform, so the same exact sum gives its value; [lower, upper] brackets that value up to rounding.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.privacy.pld.crossing import UP, crossing, refined
from p2pdp.privacy.shuffle.blanket import (
    ROUNDING,
    Reports,
    lower_outcomes,
    points,
    two_valued_outcomes,
    upper_outcomes,
)
from p2pdp.privacy.shuffle.excess import excess_of_four, excess_of_three

_CUT: Final = 1e-9  # of delta: what may be left out
_BLOCKS_MAX: Final = 400
_LISTED_MAX: Final = 600_000
_COARSE, _FINE = 1 << 12, 1 << 17
_REFINED: Final = 0.03
_ROUGH, _PRECISION = 1e-3, 1e-5
_HALVES_MAX: Final = 5_000


def krr_shuffle(epsilon_0: float, categories: int, n: int, delta: float) -> tuple[float, float]:
    """Return [lower, upper] epsilon at delta of one of n shuffled reports."""
    upper = krr_upper(epsilon_0, categories, n, delta)
    return min(upper, krr_lower(epsilon_0, categories, n, delta)), upper


def local_epsilon(epsilon_0: float, categories: int, delta: float) -> float:
    """Return epsilon of a report that is alone: 1 - gamma + gamma/L - e^epsilon gamma/L = delta."""
    left = 1.0 - delta * (1.0 + (categories - 1.0) * math.exp(-epsilon_0))
    return max(0.0, epsilon_0 + math.log(left)) if left > 0.0 else 0.0


def krr_upper(epsilon_0: float, categories: int, n: int, delta: float, kappa: float = 1.0) -> float:
    """Return the upper end, for any data of the others."""
    reports = _checked(epsilon_0, categories, n, delta, kappa)
    if n == 1 or reports.blanket * n < _CUT * delta:  # the second tells more than all others hide
        return min(epsilon_0, local_epsilon(epsilon_0, categories, delta) * UP)
    if categories == 2:
        return two_upper(epsilon_0, reports, delta)
    cut = _cut(delta / categories)
    if points(reports, cut, _BLOCKS_MAX) <= _LISTED_MAX:
        outcomes = upper_outcomes(reports, cut, _BLOCKS_MAX)
        left = delta * (1.0 - ROUNDING) - outcomes.lost
        if not left > 0.0:
            return epsilon_0
        return min(epsilon_0, crossing(outcomes.delta, left, epsilon_0)[1] * UP)

    def curve(epsilon: float, size: int) -> float:
        tilt, gain = reports.gamma * math.expm1(epsilon), reports.kept * categories
        values = (0.0, gain - tilt, -gain * math.exp(epsilon) - tilt, -tilt)
        share = reports.blanket / categories
        return excess_of_four(n, share, values, reports.blanket, size) / (n * reports.blanket)

    high = crossing(lambda epsilon: curve(epsilon, _COARSE), delta, epsilon_0, _ROUGH)[1]
    high = refined(lambda epsilon: curve(epsilon, _FINE), delta, high, epsilon_0, _REFINED, _PRECISION)
    return min(epsilon_0, high * UP)


def two_upper(epsilon_0: float, reports: Reports, delta: float) -> float:
    """Return the upper end for two categories, exact up to rounding: then a and b are all of the blanket."""
    return min(epsilon_0, crossing(lambda epsilon: two_curve(epsilon, reports, delta)[1], delta, epsilon_0)[1] * UP)


def two_curve(epsilon: float, reports: Reports, delta: float) -> tuple[float, float]:
    """Return [lower, upper] of delta at epsilon, of a blanket of two categories."""
    n = reports.others + 1
    tilt, gain = reports.gamma * math.expm1(epsilon), 2.0 * reports.kept
    ends = excess_of_three(n, reports.blanket / 2.0, 0.0, gain - tilt, -gain * math.exp(epsilon) - tilt, _cut(delta))
    return ends[0] / (n * reports.blanket), ends[1] / (n * reports.blanket)


@lru_cache(maxsize=64)
def krr_lower(epsilon_0: float, categories: int, n: int, delta: float) -> float:
    """Return the lower end: what is told for some data of the others, the same however well walks overlap."""
    reports = _checked(epsilon_0, categories, n, delta, 1.0)
    at = delta * (1.0 + ROUNDING)
    cut = _cut(delta / categories)
    if categories == 2:
        halves = {reports.others // 2} if reports.others <= _HALVES_MAX else set()
        curves = [two_valued_outcomes(reports, holders, cut).delta for holders in sorted({0, reports.others} | halves)]
        return max(crossing(curve, at, epsilon_0)[0] for curve in curves) / UP
    if points(reports, cut, reports.others + 1) <= _LISTED_MAX:
        return crossing(lower_outcomes(reports, cut).delta, at, epsilon_0)[0] / UP
    share = reports.gamma / categories
    told, other = 1.0 - reports.gamma + share, (reports.gamma - 2.0 * share) / (1.0 - 2.0 * share)

    def curve(epsilon: float) -> float:
        ratio, growth = told / share, math.exp(epsilon)
        centre = -other * math.expm1(epsilon)
        return excess_of_three(n, share, centre, ratio - growth, 1.0 - growth * ratio, cut)[0] / n

    return crossing(curve, at, epsilon_0)[0] / UP


def _cut(delta: float) -> float:
    return max(_CUT * delta, 1e-300)


def _checked(epsilon_0: float, categories: int, n: int, delta: float, kappa: float) -> Reports:
    if n < 1 or not 0.0 < delta < 1.0:
        raise UsageError("a shuffle has at least 1 report, and delta is between 0 and 1")
    return Reports.of(epsilon_0, categories, n - 1, 0, kappa)


_ALONE: Final = 1e-9
_BETWEEN: Final = 1e-8  # how close the two ends are tried to be


def clones(epsilon_0: float, n: int, delta: float, kappa: float = 1.0) -> tuple[float, float]:
    """Return [lower, upper] of epsilon at delta by the clones' pair."""
    if n < 1 or not 0.0 < delta < 1.0:
        raise UsageError("a shuffle has at least 1 report, and delta is between 0 and 1")
    reports = replace(Reports.of(epsilon_0, 2, n - 1, 0, kappa), blanket=kappa * math.exp(-epsilon_0))
    if n == 1 or n * reports.blanket < _ALONE * delta:  # which bounds the chance of any clone
        alone = local_epsilon(epsilon_0, 2, delta)
        return local_epsilon(epsilon_0, 2, delta * (1.0 + _ALONE)) / UP, min(epsilon_0, alone * UP)
    upper = crossing(lambda epsilon: two_curve(epsilon, reports, delta)[1], delta, epsilon_0)[1]
    lower = upper * (1.0 - _BETWEEN)
    if not two_curve(lower, reports, delta)[0] > delta:
        lower = crossing(lambda epsilon: two_curve(epsilon, reports, delta)[0], delta, epsilon_0)[0]
    return lower / UP, min(epsilon_0, upper * UP)
