"""The exact privacy curve of Gaussian noise, and calibration by it.

Guarantee: with mu = sensitivity / sigma, `delta_of` is the exact curve [BW18,
Theorem 8] to 10 digits or more for mu from 1e-8 to 1e4 and delta down to 1e-300; below that
it may underflow to 0, and it is never nan. `epsilon_of` and `sigma_of` are never below the truth,
`mu_of_curve` never above it, each within 1e-9 of it (relative); only where epsilon is so
much smaller than mu that a float delta no longer determines it, the margin is wider.

How: with a = epsilon/mu - mu/2, b = a + mu, phi the normal density and R the Mills ratio
(upper tail / density), e^epsilon phi(b) = phi(a), hence delta = phi(a) (R(a) - R(b)). No
exponential of epsilon is taken. For small mu the difference is integrated instead of
subtracted: R' = t R - 1.

The curve is that of continuous noise. Drawing on a grid is an assumption of the claim.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import positive, ratio_upper

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT_2: Final = math.sqrt(2.0)
_ROOT_HALF_PI: Final = math.sqrt(math.pi / 2)
_LOG_ROOT_2PI: Final = math.log(2 * math.pi) / 2

_FRACTION_FROM: Final = 4.0  # from here on the continued fraction of R is both fast and exact
_SMALL_MU: Final = 0.1
_UNDERFLOW_FROM: Final = 39.0  # phi(39) is below the smallest float
_SATURATED_AT: Final = -40.0  # the upper tail from here is 1 to the last digit
_DELTA_ERROR: Final = 1e-12  # relative, for exact a and b; checked against many digits in the tests
_MARGIN: Final = 1e-12
_MU_MIN: Final = 1e-300  # smaller ones count as this; slopes would overflow
_MU_MAX: Final = 1e6  # for larger ones the bound delta <= Q(a) is used, within a part in 10,000
_EPSILON_MAX: Final = 1e12  # the same for what is above it
_DELTA_MIN: Final = 1e-300

# Gauss-Legendre with five points on [-1, 1] (Abramowitz and Stegun, table 25.4).
_POINTS: Final = (
    (0.0, 0.568888888888888889),
    (0.538469310105683091, 0.478628670499366468),
    (-0.538469310105683091, 0.478628670499366468),
    (0.906179845938663993, 0.236926885056189088),
    (-0.906179845938663993, 0.236926885056189088),
)


def delta_of(epsilon: float, mu: float) -> float:
    """Return the smallest delta that goes with epsilon, for any real epsilon."""
    _check_mu(mu)
    if math.isnan(epsilon):
        raise UsageError("epsilon must be a number.")
    if epsilon < 0:  # the pair is symmetric
        return -math.expm1(epsilon) + math.exp(epsilon) * delta_of(-epsilon, mu)
    if mu == 0 or epsilon == math.inf:
        return 0.0
    if mu == math.inf:
        return 1.0
    if epsilon / mu - mu / 2 > _UNDERFLOW_FROM:
        return 0.0
    return min(1.0, math.exp(_log_delta(epsilon, mu)))


def epsilon_of(delta: float, mu: float) -> float:
    """Return the smallest epsilon at delta, rounded up; infinite where nothing finite is enough."""
    _check_mu(mu)
    if not 0 <= delta <= 1:
        raise UsageError("delta must be a number from 0 to 1.")
    if delta_of(0.0, mu) <= delta:
        return 0.0
    if delta == 0:
        return math.inf
    mu = max(mu, _MU_MIN)
    high = mu * (_tail_start(delta) + mu / 2)
    if mu > _MU_MAX:
        return high * (1 + _MARGIN)
    log_target = math.log(delta)

    def shortfall(epsilon: float) -> tuple[float, float]:
        log_delta = _log_delta(epsilon, mu)
        return log_target - log_delta, math.exp(_log_slope(epsilon, mu) - log_delta)

    root = _solve(shortfall, 0.0, high, start=high)
    uncertain = _DELTA_ERROR * math.exp(min(log_target - _log_slope(root, mu), 700.0))
    return root * (1 + _MARGIN) + uncertain + 4e-16 * mu * mu


def mu_of_curve(epsilon: float, delta: float) -> float:
    """Return the largest mu whose curve stays at or below delta at epsilon, rounded down."""
    if not 0 <= epsilon < math.inf:
        raise UsageError("epsilon must be a finite number of at least 0 for Gaussian noise.")
    if not _DELTA_MIN <= delta < 1:
        raise UsageError(f"delta must be at least {_DELTA_MIN:g} and below 1 for Gaussian noise.")
    # delta <= Q(a), and delta <= mu phi(0): both give a mu that is certainly small enough.
    low = max(_mu_at(epsilon, _tail_start(delta)), delta * _ROOT_2 * _ROOT_HALF_PI)
    if epsilon > _EPSILON_MAX:
        return low * (1 - _MARGIN)
    high = _mu_at(epsilon, _SATURATED_AT)
    log_target = math.log(delta)

    def excess(log_mu: float) -> tuple[float, float]:
        mu = math.exp(log_mu)
        log_delta = _log_delta(epsilon, mu)
        return log_delta - log_target, mu * math.exp(_log_density(epsilon / mu - mu / 2) - log_delta)

    mu = math.exp(_solve(excess, math.log(low), math.log(high), start=math.log(low)))
    uncertain = _DELTA_ERROR * math.exp(min(log_target - _log_density(epsilon / mu - mu / 2), 700.0))
    return max(low * (1 - _MARGIN), mu * (1 - _MARGIN) - uncertain)


def sigma_of(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation that gives (epsilon, delta), rounded up."""
    return ratio_upper(positive("The sensitivity", sensitivity), mu_of_curve(epsilon, delta))


def _check_mu(mu: float) -> None:
    if not mu >= 0:
        raise UsageError("mu must be a number of at least 0.")


def _log_density(x: float) -> float:
    return -x * x / 2 - _LOG_ROOT_2PI


def _log_slope(epsilon: float, mu: float) -> float:
    """Return the logarithm of -d delta / d epsilon = e^epsilon Q(b) = phi(a) R(b)."""
    return _log_density(epsilon / mu - mu / 2) + math.log(_mills(epsilon / mu + mu / 2))


def _log_delta(epsilon: float, mu: float) -> float:
    """Return the logarithm of delta for epsilon >= 0, finite mu > 0 and a of at most 40."""
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if mu < _SMALL_MU:
        middle = epsilon / mu
        points = (middle + mu / 2 * place for place, _ in _POINTS)
        mean = sum(weight * (1 - t * _mills(t)) for t, (_, weight) in zip(points, _POINTS, strict=True)) / 2
        return _log_density(a) + math.log(mu) + math.log(mean)
    if a > 0:
        return _log_density(a) + math.log(_mills(a) - _mills(b))
    return math.log(math.erfc(a / _ROOT_2) / 2 - math.exp(_log_density(a)) * _mills(b))


def _mills(x: float) -> float:
    """Return R(x) = Q(x) / phi(x) for x above -1."""
    if x < _FRACTION_FROM:
        return _ROOT_HALF_PI * math.erfc(x / _ROOT_2) * math.exp(x * x / 2)
    value = x  # R(x) = 1/(x + 1/(x + 2/(x + 3/(x + ...)))), Abramowitz and Stegun 26.2.14
    for index in range(6 + int(1000 / (x * x)), 0, -1):
        value = x + index / value
    return 1 / value


def _tail_start(delta: float) -> float:
    """Return an upper end for a: delta <= Q(a) <= exp(-a^2/2) / 2 for a >= 0."""
    return math.sqrt(max(0.0, -2 * (math.log(delta) + math.log(2))))


def _mu_at(epsilon: float, a: float) -> float:
    """Return the mu with epsilon/mu - mu/2 = a, the positive root of mu^2/2 + a mu - epsilon."""
    root = math.sqrt(a * a + 2 * epsilon)
    return 2 * epsilon / (a + root) if a > 0 else root - a


def _solve(function: Callable[[float], tuple[float, float]], low: float, high: float, start: float) -> float:
    """Find the zero of an increasing function given with its slope: Newton, kept inside a shrinking bracket."""
    x = start
    for _ in range(200):
        value, slope = function(x)
        if value < 0:
            low = x
        else:
            high = x
        following = x - value / slope if slope > 0 else math.inf
        if not low <= following <= high:
            following = (low + high) / 2
        if abs(following - x) <= 1e-14 * abs(x):
            return following
        x = following
    return x
