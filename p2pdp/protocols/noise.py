"""The strength of noise that a spec asks for."""

from __future__ import annotations

import math
from collections.abc import Callable

from p2pdp.core.spec import NoisePart
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.mechanisms.clipping import Bounds, sensitivity


def sigma_of(noise: NoisePart, bounds: Bounds, dimensions: int) -> float:
    """Return the standard deviation of one contribution's noise, in data units; 0 for `none`."""
    if noise.mechanism != "laplace":
        return gaussian_sigma(noise, lambda: sensitivity(bounds, dimensions))
    if noise.sigma is not None:
        return noise.sigma
    assert noise.epsilon is not None  # the spec's checks ask for one of the two
    return math.sqrt(2.0) * laplace.scale_of_epsilon(noise.epsilon, dimensions * float(bounds.span))


def gaussian_sigma(noise: NoisePart, moved: Callable[[], float]) -> float:
    """Return the deviation of Gaussian noise, as given or for the epsilon of what is `moved` so far; 0 for `none`."""
    if noise.mechanism == "none":
        return 0.0
    if noise.sigma is not None:
        return noise.sigma
    assert noise.epsilon is not None  # the spec's checks ask for one of the two
    assert noise.delta is not None
    return gaussian.sigma_of(noise.epsilon, noise.delta, moved())
