"""The exact Gaussian curve for many values at once.

`mechanisms.gaussian` answers for one mu with care for every last digit; an auditor of 500 users has 250,000.
Where a float no longer determines epsilon to nine digits (just above the mu at which it sets in), and for very
small and very large mu, `epsilons_of` takes that careful answer too: it is never below it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.rounding import inside

_ROOT_2: Final = math.sqrt(2.0)
_STEPS_MAX: Final = 60
_MARGIN: Final = 1e-9  # relative; covers the rounding of the logarithms below
_EDGE: Final = 1e-6
_TOLD_FROM: Final = 0.01  # epsilons are far more exact than `_TOLD_APART` from here on
_TOLD_APART: Final = 1e-3
_CAREFUL_BELOW: Final = 1e-5  # where the difference of two nearly equal tails loses too many digits
_CAREFUL_ABOVE: Final = 1e6  # where the difference of two large logarithms does, and squares overflow in the end


def epsilon_of_each(delta: float, mu: Floats) -> Floats:
    """Return the same as `epsilons_of` for few numbers, each as claims have it, which is a little less coarse."""
    inside("delta", delta)
    found = [math.nan if math.isnan(one) else gaussian.epsilon_of(delta, one) for one in mu.ravel().tolist()]
    return np.array(found).reshape(mu.shape)


def epsilons_of(delta: float, mu: Floats) -> Floats:
    """Return epsilon at delta for each mu, rounded up; NaN, which marks what is no pair, stays NaN."""
    inside("delta", delta)
    result = np.array(mu, dtype=np.float64)
    if np.any(result < 0.0):
        raise UsageError("mu must be a number of at least 0.")
    plain = np.isfinite(result) & (result >= _CAREFUL_BELOW) & (result <= _CAREFUL_ABOVE)
    careful = np.isfinite(result) & ~plain
    values, back = np.unique(result[careful], return_inverse=True)
    result[careful] = np.array([gaussian.epsilon_of(delta, float(value)) for value in values])[back]
    if np.any(plain):
        values, back = np.unique(result[plain], return_inverse=True)
        result[plain] = _of_values(delta, values.tobytes())[back]
    return result


@lru_cache(maxsize=1)  # claims ask for the mean over all pairs, and then for each pair
def _of_values(delta: float, packed: bytes) -> Floats:
    """Return the same for different numbers, none of them extreme."""
    values = np.frombuffer(packed, dtype=np.float64)
    epsilons = _solve(delta, values)
    for at in np.nonzero(_is_doubtful(delta, epsilons, values))[0]:
        epsilons[at] = gaussian.epsilon_of(delta, float(values[at]))
    return epsilons


def count_above(delta: float, mu: Floats, epsilon: float) -> int:
    """Return how many of these mu have an epsilon above this one by `epsilons_of`, which few of them are asked for.

    Epsilons that are equal but for the last digits count as either: those of one mu depend on what is solved with it.
    """
    inside("delta", delta)
    plain = (mu >= _CAREFUL_BELOW) & (mu <= _CAREFUL_ABOVE)
    if not _TOLD_FROM <= epsilon < math.inf:
        plain &= False
    values, target = mu[plain], np.log(delta)
    above = _log_delta(np.full_like(values, epsilon * (1.0 + _TOLD_APART)), values) > target
    near = ~above & (_log_delta(np.full_like(values, epsilon * (1.0 - _TOLD_APART)), values) > target)
    rest = np.concatenate([values[near], mu[~plain]])
    return int(np.sum(above)) + int(np.sum(epsilons_of(delta, rest) > epsilon))


def _is_doubtful(delta: float, epsilon: Floats, mu: Floats) -> Bools:
    """Return where rounding moves epsilon by more than half the margin, or decides whether it is 0.

    Delta, a difference of two tails, is taken to be off by 1e-12 of itself or 1e-15 of the larger tail.
    """
    from scipy.special import log_ndtr

    slope = epsilon + log_ndtr(-mu / 2 - epsilon / mu)  # the logarithm of -d delta / d epsilon
    error = np.maximum(1e-12 * delta, 1e-15 * np.exp(log_ndtr(mu / 2 - epsilon / mu)))
    sensitive = epsilon * np.exp(slope) * _MARGIN / 2 < error
    at_edge = np.abs(_log_delta(np.zeros_like(mu), mu) - np.log(delta)) < _EDGE
    return np.asarray(np.where(epsilon > 0.0, sensitive, at_edge))


def _log_delta(epsilon: Floats, mu: Floats) -> Floats:
    """Return the logarithm of the curve."""
    from scipy.special import log_ndtr

    upper = log_ndtr(mu / 2 - epsilon / mu)
    ratio = epsilon + log_ndtr(-mu / 2 - epsilon / mu) - upper
    return np.asarray(upper + np.log(-np.expm1(np.minimum(ratio, -1e-300))))


def _solve(delta: float, mu: Floats) -> Floats:
    """Bisect a bracket that holds the answer, which is safe where Newton steps would need guarding."""
    target = np.log(delta)
    low = np.zeros_like(mu)
    high = mu * (np.sqrt(-2.0 * target) + mu)  # the tail bound exp(-t^2/2) at t = epsilon/mu - mu/2
    enough = _log_delta(low, mu) <= target
    for _ in range(_STEPS_MAX):
        middle = (low + high) / 2
        inside = _log_delta(middle, mu) <= target
        high = np.where(inside, middle, high)
        low = np.where(inside, low, middle)
        if np.all(high - low <= 1e-12 * high):
            break
    return np.where(enough, 0.0, high * (1.0 + _MARGIN))


def gaussian_deltas(epsilon: Floats, mu: Floats) -> Floats:
    """Return the curve of a Gaussian at epsilon of at least 0: accurate relative to itself, far into its tail."""
    from scipy.special import erfcx, ndtr

    ratio = epsilon / mu
    low, high = ratio - mu / 2, ratio + mu / 2
    with np.errstate(under="ignore"):
        density = np.square(low)
        density /= -2.0
        np.exp(density, out=density)
        density *= 0.5
        near = np.nonzero(low <= 0.0)
        above = erfcx(np.divide(high, _ROOT_2, out=high), out=high)
        within = ndtr(-low[near]) - density[near] * above[near]
        np.maximum(low, 0.0, out=low)
        found: Floats = erfcx(np.divide(low, _ROOT_2, out=low), out=low)
        found -= above
        found *= density
    found[near] = within
    return np.maximum(found, 0.0, out=found)
