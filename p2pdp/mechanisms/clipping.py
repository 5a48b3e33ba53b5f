"""Raw data becomes `Bounded`, and protocols build their inputs from nothing else.

Guarantee: a `Bounded` holds finite numbers inside its bounds, in an array that cannot be
written to, and neither its text nor any error shows a value. `clipped` counts the numbers
that were moved; it depends on the data and is for their owner only.

The caller chooses the bounds without looking at the data: bounds taken from the data
would leak it, and no claim accounts for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import diagonal_upper, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = Floats

_TABLE_DIMENSIONS: Final = 2


@dataclass(frozen=True, slots=True)
class Bounds:
    """The closed interval into which every single number is clipped."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError("Clipping bounds must be two finite numbers, the lower one first.")
        if not math.isfinite(self.high - self.low):
            raise UsageError("Clipping bounds must be less than the largest float apart.")

    @property
    def span(self) -> Fraction:
        """Return the distance between the bounds, without rounding."""
        return Fraction(self.high) - Fraction(self.low)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bounded:
    """`rows` is a float64 array of shape (m,) or (m, d), all of it within `bounds`."""

    rows: Rows
    bounds: Bounds
    clipped: int

    def __post_init__(self) -> None:
        rows = self.rows
        if rows.dtype != np.float64 or rows.flags.writeable:
            raise UsageError("Bounded rows must be a read-only float64 array; use clip() to make them.")
        if not np.all((rows >= self.bounds.low) & (rows <= self.bounds.high)):
            raise UsageError("Bounded rows must lie within their bounds; use clip() to make them.")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Bounded(shape={self.rows.shape})"


def clip(values: Sequence[float] | npt.ArrayLike, bounds: Bounds) -> Bounded:
    """Return the values, one row a contribution, with each number outside moved to the nearer bound."""
    rows = _as_rows(values)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        place = f"Row {bad[0][0]}" + (f", column {bad[0][1]}" if rows.ndim == _TABLE_DIMENSIONS else "")
        raise UsageError(f"{place} of the data (counted from 0) is not a finite number; correct or leave out that row.")
    outside = int(np.count_nonzero((rows < bounds.low) | (rows > bounds.high)))
    inside = np.clip(rows, bounds.low, bounds.high)
    inside.setflags(write=False)
    return Bounded(inside, bounds, outside)


def sensitivity(bounds: Bounds, dimensions: int) -> float:
    """Return how far (L2) replacing one row of that many numbers can move it, rounded up: sqrt(d) (b - a)."""
    return diagonal_upper(bounds.span, whole("The number of dimensions", dimensions, 1))


def _as_rows(values: Sequence[float] | npt.ArrayLike) -> Rows:
    # Strings are refused although numpy would read them: what counts as a number is decided where files are read.
    try:
        raw = np.asarray(values)
    except ValueError:
        raise UsageError("The rows of the data must all have the same number of columns.") from None
    if raw.dtype.kind not in "biuf":
        raise UsageError("The data must consist of plain numbers.")
    if raw.ndim not in (1, _TABLE_DIMENSIONS) or (raw.ndim == _TABLE_DIMENSIONS and raw.shape[1] == 0):
        raise UsageError("The data must be a list of numbers or a table with at least one column.")
    return np.array(raw, dtype=np.float64)
