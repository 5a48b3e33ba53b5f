"""How often a uniformly random walk on the complete graph visits a user: T steps, each at one of n users.

`most_visits` is the exact quantile of the binomial law, rounded up; `printed_visits` what the first version of
[CB20, Theorem 3] puts in its place by Hoeffding's inequality.
"""

from __future__ import annotations

import math
from typing import Final

_MARGIN: Final = 1e-9  # relative, for the error of the incomplete beta function


def most_visits(hops: int, n: int, delta_hat: float) -> int:
    """The least N that the number of visits exceeds with probability at most `delta_hat`."""
    from scipy.special import betainc

    if n == 1:
        return hops
    low, high = -1, hops  # low is too few, high is enough
    while high - low > 1:
        middle = (low + high) // 2
        above = float(betainc(middle + 1.0, float(hops - middle), 1.0 / n))  # P(more than `middle`)
        if above * (1.0 + _MARGIN) <= delta_hat:
            high = middle
        else:
            low = middle
    return high


def printed_visits(hops: int, n: int, delta_hat: float) -> float:
    """T/n + sqrt(3/2 T ln(1/delta_hat))."""
    return hops / n + math.sqrt(-1.5 * hops * math.log(delta_hat))
