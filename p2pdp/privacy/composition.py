"""Epsilon and delta of several mechanisms together, and of one that runs on a sample.

`advanced` is the composition that the papers print [DRV10]; `heterogeneous` takes
the least of the three forms of [KOV15, Theorem 3.5]; `optimal` is [KOV15, Theorem 3.3],
which no accountant that knows only epsilon and k can beat. All hold for adaptive choices of the mechanisms, with
parameters fixed beforehand, and answer for the epsilons alone: the deltas add up (`total_delta`), and that of the
composition itself, `delta_prime`, comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import Refused

_OVERFLOW_FROM: Final = 709.0
_MARGIN: Final = 1e-8  # relative error of a binomial probability of a million trials, by logarithms of factorials


def total_delta(*terms: float) -> float:
    """Return the sum of deltas; an answer whose delta is 1 or more says nothing and is refused."""
    total = math.fsum(terms)
    if not total < 1.0:
        raise Refused(f"the deltas add up to {total:.6g}, and the theorem says nothing unless that is below 1")
    return total


def growth(epsilon: float) -> float:
    """Return e^epsilon - 1, infinite where no float can hold it."""
    return math.expm1(epsilon) if epsilon < _OVERFLOW_FROM else math.inf


def advanced(epsilon: float, k: float, delta_prime: float) -> float:
    """Return sqrt(2 k ln(1/delta')) epsilon + k epsilon (e^epsilon - 1)."""
    return math.sqrt(-2.0 * k * math.log(delta_prime)) * epsilon + k * epsilon * growth(epsilon)


def heterogeneous(epsilons: Sequence[float] | Floats, delta_prime: float) -> float:
    """Return the least of the sum and the two forms in which the root of the sum of squares stands for most of it."""
    each = np.asarray(epsilons, dtype=np.float64)
    squares = float(np.sum(each**2))
    drift = float(np.sum(each * np.tanh(each / 2.0)))
    return _least_form(float(np.sum(each)), drift, squares, delta_prime)


def heterogeneous_sums(total: Floats, drift: Floats, squares: Floats, delta_prime: float) -> Floats:
    """Return `heterogeneous` for many at once, from the sums of epsilon, epsilon tanh(epsilon / 2) and epsilon^2."""
    second = np.sqrt(-2.0 * squares * math.log(delta_prime))
    third = np.sqrt(2.0 * squares * np.log(math.e + np.sqrt(squares) / delta_prime))
    return np.minimum(total, drift + np.minimum(second, third))


def homogeneous(epsilon: float, k: int, delta_prime: float) -> float:
    """Return `heterogeneous` for k times the same epsilon."""
    return _least_form(k * epsilon, k * epsilon * math.tanh(epsilon / 2.0), k * epsilon**2, delta_prime)


def _least_form(total: float, drift: float, squares: float, delta_prime: float) -> float:
    return float(heterogeneous_sums(np.array(total), np.array(drift), np.array(squares), delta_prime))


def optimal(epsilon: float, k: int, delta_prime: float) -> float:
    """Return the least epsilon of k pure mechanisms of this epsilon together at delta', rounded up.

    The worst of them is binary randomized response: with probability C(k, l) e^((k-l) epsilon) / (1+e^epsilon)^k
    the loss is (k - 2l) epsilon. Between two losses delta is A - e^x B, with A and B the masses of both
    worlds above, and is solved for x.
    """
    from scipy.special import gammaln

    lies = np.arange(k // 2 + 1, dtype=np.float64)  # as many as leave a loss of at least 0
    losses = (k - 2.0 * lies) * epsilon
    chosen = gammaln(k + 1.0) - gammaln(lies + 1.0) - gammaln(k - lies + 1.0)
    whole = k * math.log1p(math.exp(-epsilon))  # (1 + e^epsilon)^k = e^(k epsilon) (1 + e^-epsilon)^k
    truth = np.cumsum(np.exp(chosen - lies * epsilon - whole)) * (1.0 + _MARGIN)
    log_other = np.logaddexp.accumulate(chosen - (k - lies) * epsilon - whole) - _MARGIN
    following = np.append(losses[1:], 0.0)  # the interval of x that a prefix of losses is above
    solved = np.full_like(losses, -np.inf)
    above = truth > delta_prime
    solved[above] = np.log(truth[above] - delta_prime) - log_other[above]
    fits = np.nonzero(solved >= following)[0]
    if not fits.size:
        return 0.0
    return min(k * epsilon, float(max(solved[fits[0]], 0.0)) * (1.0 + 1e-12))


def sampled_epsilon(epsilon: float, share: float) -> float:
    """Return epsilon of a mechanism on a sample that holds the user with probability `share`."""
    if epsilon > 40.0:  # e^epsilon - 1 is e^epsilon to the last digit, and might overflow
        return float(np.logaddexp(0.0, math.log(share) + epsilon)) if share > 0.0 else 0.0
    return math.log1p(share * math.expm1(epsilon))


def drawn_with_replacement(n: int, draws: int) -> float:
    """Return the probability that a user is among that many uniform draws of n."""
    return -math.expm1(draws * math.log1p(-1.0 / n)) if n > 1 else float(draws > 0)
