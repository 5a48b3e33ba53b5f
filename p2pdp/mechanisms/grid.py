"""The grid of whole steps on which noise is drawn and walk tokens are added.

Guarantee: the step is a power of two, so only `to_grid` ever rounds (downwards), and sums
on the grid are exact. Between 2**20 and 2**30 steps go into the smallest noise scale, so
that treating the discrete noise as continuous is a fair assumption of a claim, while
every sum stays below 2**61 and thus inside an int64.

The caller gives `choose_grid` an upper end for the magnitude of every partial sum, noise
included. A claim uses `Grid.sensitivity`: rounding moves each coordinate of a vector
by itself, so the step counts once a coordinate and not once a vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import diagonal_upper, positive, whole

if TYPE_CHECKING:
    from p2pdp.mechanisms.clipping import Bounds, Rows

GridValues = Ints

NOISE_TAIL: Final = 64.0  # deviations of room for noise, far beyond anything that is ever drawn

_EXPONENT_MAX: Final = 1000  # steps beyond would meet the ends of the range of float64
_SUM_BITS: Final = 61
EXACT_BITS: Final = _SUM_BITS - 53  # of room that make all sums floats: those are exact below 2**53 steps
_SCALE_BITS_MIN: Final = 20
_SCALE_BITS_MAX: Final = 30
_SPAN_BITS_MAX: Final = 32  # where no noise sets a scale
_INT64_END: Final = 2.0**63


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers as whole multiples of the step 2**exponent."""

    exponent: int

    def __post_init__(self) -> None:
        if abs(whole("A grid exponent", self.exponent, -_EXPONENT_MAX)) > _EXPONENT_MAX:
            raise UsageError(f"A grid exponent must be at most {_EXPONENT_MAX}.")

    @property
    def step(self) -> float:
        return math.ldexp(1.0, self.exponent)

    @overload
    def to_grid(self, rows: float) -> int: ...

    @overload
    def to_grid(self, rows: Rows) -> GridValues: ...

    def to_grid(self, rows: float | Rows) -> int | GridValues:
        """Return the whole number of steps at or below each number."""
        if isinstance(rows, np.ndarray):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused just below
                steps = np.floor_divide(rows, self.step)
            if not np.all(np.abs(steps) < _INT64_END):
                raise UsageError("A number does not fit on the grid; choose a coarser one.")
            return steps.astype(np.int64)
        count = rows // self.step
        if not abs(count) < _INT64_END:
            raise UsageError("A number does not fit on the grid; choose a coarser one.")
        return int(count)

    @overload
    def from_grid(self, value: int) -> float: ...

    @overload
    def from_grid(self, value: GridValues) -> Rows: ...

    def from_grid(self, value: int | GridValues) -> float | Rows:
        """Return what a number of steps stands for; exact up to 2**53 steps, then the nearest float."""
        if isinstance(value, np.ndarray):
            return value.astype(np.float64) * self.step
        return float(value) * self.step

    def grid_units_up(self, length: float | Fraction) -> int:
        """Return the fewest steps that make up at least this length."""
        positive("A length on the grid", float(length))
        return math.ceil(Fraction(length) / Fraction(self.step))

    def sensitivity(self, bounds: Bounds, dimensions: int) -> float:
        """Return how far (L2, in steps) replacing one clipped row can move it on the grid, rounded up."""
        side = self.grid_units_up(bounds.span)
        return diagonal_upper(Fraction(side), whole("The number of dimensions", dimensions, 1))


def choose_grid(scale_min: float | None, span: float, magnitude_max: float) -> Grid:
    """Choose the finest grid on which sums up to `magnitude_max` fit.

    `scale_min` is the smallest noise scale in use and None where there is no noise;
    `span` is the distance between the clipping bounds, which takes its place there.
    """
    positive("The distance between the clipping bounds", span)
    if magnitude_max != math.inf:
        positive("The largest magnitude on the grid", magnitude_max)
    scale = span if scale_min is None else positive("The smallest noise scale", scale_min)
    bits_max = _SPAN_BITS_MAX if scale_min is None else _SCALE_BITS_MAX
    mantissa, above = math.frexp(scale)  # 2**(above - 1) <= scale < 2**above
    finest = above - (mantissa == 0.5) - bits_max
    fits_from = math.frexp(magnitude_max)[1] - _SUM_BITS if magnitude_max != math.inf else above
    coarsest = above - 1 - _SCALE_BITS_MIN
    exponent = max(finest, fits_from)
    if exponent > coarsest:
        raise UsageError(
            f"[noise], [data] clip: sums would exceed 2**{_SUM_BITS} steps of a grid fine enough for the smallest "
            "noise; bring clipping bounds and standard deviations closer together, or have fewer contributions."
        )
    return Grid(exponent)
