"""Laplace noise: scale, epsilon, and the privacy curve of one release.

Guarantee: every epsilon is rounded up, and a scale made for an epsilon is rounded up too.
Sensitivities are L1. The curve is that of one number: compositions of several releases
and vectors are bounded by `epsilon_of` with their L1 sensitivity.
"""

from __future__ import annotations

import math

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import positive, ratio_upper


def scale_of_sigma(sigma: float) -> float:
    """Return the scale whose standard deviation is sigma: sigma / sqrt(2)."""
    return positive("sigma", sigma) / math.sqrt(2.0)


def scale_of_epsilon(epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the smallest scale that gives epsilon [DMNS06], rounded up."""
    return ratio_upper(positive("The sensitivity", sensitivity), positive("epsilon", epsilon))


def epsilon_of(scale: float, sensitivity: float = 1.0) -> float:
    """Return pure epsilon of one release, rounded up; also of a vector of that L1 sensitivity."""
    return ratio_upper(positive("The sensitivity", sensitivity), positive("The Laplace scale", scale))


def delta_of(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return the curve of one released number, for any real epsilon.

    The privacy loss is at most r = sensitivity / scale, and integrating it gives
    1 - exp((epsilon - r) / 2) for 0 <= epsilon <= r; below 0 the symmetry of the pair is used.
    """
    if math.isnan(epsilon):
        raise UsageError("epsilon must be a number.")
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * delta_of(-epsilon, scale, sensitivity)
    return max(0.0, -math.expm1((epsilon - epsilon_of(scale, sensitivity)) / 2))
