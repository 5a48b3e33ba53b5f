"""Shuffling by clones: epsilon of one of n shuffled reports of any local randomizer.

[FMT21, Theorem 3.1]: each other report is, with probability
e^-epsilon_0, as good as one of u's two, chosen by a coin. So the shuffle tells at most what the pair
(A + D, C - A + 1 - D) tells against the same with D flipped, where C ~ Bin(n - 1, e^-epsilon_0), A ~ Bin(C, 1/2) and
D ~ Bern(e^epsilon_0 / (e^epsilon_0 + 1)). That is the blanket of `krr.py` for two categories with another chance of
being uniform, so the same exact sum gives its value; [lower, upper] brackets that value up to rounding.

With `kappa` below 1 each other report is shuffled with u's with that chance only, and otherwise revealed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from p2pdp.accounting.blanket import Reports
from p2pdp.accounting.crossing import crossing
from p2pdp.accounting.krr import local_epsilon, two_curve
from p2pdp.core.errors import UsageError

_UP: Final = 1.0 + 1e-12
_ALONE: Final = 1e-9
_BETWEEN: Final = 1e-8  # how close the two ends are tried to be


def clones(epsilon_0: float, n: int, delta: float, kappa: float = 1.0) -> tuple[float, float]:
    """[lower, upper] of epsilon at delta by the clones' pair."""
    if n < 1 or not 0.0 < delta < 1.0:
        raise UsageError("a shuffle has at least 1 report, and delta is between 0 and 1")
    reports = replace(Reports.of(epsilon_0, 2, n - 1, 0, kappa), blanket=kappa * math.exp(-epsilon_0))
    if n == 1 or n * reports.blanket < _ALONE * delta:  # which bounds the chance of any clone
        alone = local_epsilon(epsilon_0, 2, delta)
        return local_epsilon(epsilon_0, 2, delta * (1.0 + _ALONE)) / _UP, min(epsilon_0, alone * _UP)
    upper = crossing(lambda epsilon: two_curve(epsilon, reports, delta)[1], delta, epsilon_0)[1]
    lower = upper * (1.0 - _BETWEEN)
    if not two_curve(lower, reports, delta)[0] > delta:
        lower = crossing(lambda epsilon: two_curve(epsilon, reports, delta)[0], delta, epsilon_0)[0]
    return lower / _UP, min(epsilon_0, upper * _UP)
