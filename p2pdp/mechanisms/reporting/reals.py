"""Reports of bounded reals, or vectors of them: clipped values on a grid, with Laplace or Gaussian noise.

Laplace noise of scale b steps makes a report purely epsilon-private with epsilon = Delta_1 / b exactly, Delta_1 being
the largest distance (L1) of two values on the grid, in steps: the sampler's discrete Laplace noise has just this curve.
Gaussian noise has no pure epsilon; `mu` says what it protects.

A dummy is a report of the middle of the bounds. Weights are the noised values in data units; values are rounded down to
the grid, which has 2^20 steps at least in the noise's scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import NOISE_TAIL, choose_grid
from p2pdp.mechanisms.reporting.contract import NO_NEEDS, MalformedReport, Randomizer, vectors
from p2pdp.mechanisms.rounding import positive, ratio_upper, whole

_BYTES: Final = 8
_VALUE_MAX: Final = 2**62


class RealReports(Randomizer):
    """`mechanism` is laplace, gaussian or none; noise is given by sigma, or by epsilon (and delta for gaussian)."""

    counted = False

    def __init__(
        self,
        bounds: Bounds,
        dimensions: int,
        mechanism: str,
        *,
        sigma: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        self.bounds, self.width = bounds, whole("The number of dimensions", dimensions, 1)
        self.outputs, self.report_bytes = self.width, _BYTES * self.width
        scale = _scale(bounds, self.width, mechanism, sigma, epsilon, delta)
        reach = max(abs(bounds.low), abs(bounds.high)) + NOISE_TAIL * scale
        self.grid = choose_grid(scale or None, float(bounds.span), reach)
        side = self.grid.grid_units_up(bounds.span)
        steps = math.ldexp(scale, -self.grid.exponent)
        if mechanism == "laplace" and sigma is None:
            assert epsilon is not None
            steps = laplace.scale_of_epsilon(epsilon, float(side * self.width))  # of what the grid makes of the bounds
        self.noise = Mechanism(mechanism, steps)
        self.exponent = self.grid.exponent
        self.needs = NO_NEEDS if mechanism == "none" else ((self.noise, (self.width,)),)
        self.epsilon, self.mu = math.inf, math.inf
        if mechanism == "laplace":
            self.epsilon = laplace.epsilon_of(steps, float(side * self.width))
        elif mechanism == "gaussian":
            self.epsilon, self.mu = None, ratio_upper(self.grid.sensitivity(bounds, self.width), steps)
        middle = float(self.bounds.low + self.bounds.span / 2)
        self._middle = self.grid.to_grid(np.full(self.width, middle))

    def __repr__(self) -> str:
        return f"RealReports({self.width}, {self.noise.name})"

    @property
    def noise_variance(self) -> float:
        """Return the variance of one number's noise, in data units."""
        factor = {"laplace": 2.0, "gaussian": 1.0, "none": 0.0}[self.noise.name]
        return factor * math.ldexp(self.noise.scale, self.grid.exponent) ** 2

    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        rows = vectors(values)
        if rows.shape[1:] != (self.width,) or not np.all((rows >= self.bounds.low) & (rows <= self.bounds.high)):
            raise UsageError(f"A value must be {self.width} numbers within the clipping bounds; use clip() first.")
        found = self.grid.to_grid(rows)
        return found + drawn[0] if drawn else found

    def dummies(self, count: int, drawn: Sequence[Any]) -> Ints:
        found = np.tile(self._middle, (count, 1))
        return found + drawn[0] if drawn else found

    def weights(self, reports: Ints) -> Floats:
        return self.grid.from_grid(reports)

    def value_squares(self, sums: Floats, squares: Floats, count: float) -> Floats:
        return np.asarray(squares - count * self.noise_variance)

    @property
    def dummy_moments(self) -> tuple[Floats, Floats]:
        mean = self.grid.from_grid(self._middle)
        return mean, mean**2 + self.noise_variance

    @property
    def typical_moments(self) -> tuple[Floats, Floats]:
        middle, span = float(self.bounds.low + self.bounds.span / 2), float(self.bounds.span)
        square = middle**2 + span**2 / 12.0 + self.noise_variance
        return np.full(self.width, middle), np.full(self.width, square)

    def encoded(self, numbers: Ints) -> bytes:
        return numbers.astype(">i8").tobytes()

    def decoded(self, data: bytes) -> Ints:
        numbers = np.frombuffer(data, dtype=">i8").astype(np.int64)
        if np.any((numbers > _VALUE_MAX) | (numbers < -_VALUE_MAX)):
            raise MalformedReport("a report is larger than any noised value")
        return numbers


def _scale(
    bounds: Bounds, dimensions: int, mechanism: str, sigma: float | None, epsilon: float | None, delta: float | None
) -> float:
    """Return the scale parameter in data units, to choose a grid by; 0 without noise."""
    if mechanism == "none":
        return 0.0
    if mechanism not in {"laplace", "gaussian"}:
        raise UsageError(f"Bounded reals are reported with laplace or gaussian noise or none, not {mechanism}.")
    if (sigma is None) == (epsilon is None):
        raise UsageError("The noise of a report is set either by sigma or by epsilon.")
    if sigma is not None:
        return positive("sigma", sigma) if mechanism == "gaussian" else laplace.scale_of_sigma(sigma)
    assert epsilon is not None
    span = float(bounds.span)
    if mechanism == "laplace":
        return laplace.scale_of_epsilon(epsilon, span * dimensions)
    if delta is None:
        raise UsageError("Gaussian noise that is set by epsilon needs a delta.")
    return gaussian.sigma_of(epsilon, delta, math.sqrt(dimensions) * span * (1.0 + 2.0**-19))
