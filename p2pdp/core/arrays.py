"""The names of array types, so that signatures say which numbers an array holds; and rows, one for each number.

Nothing else in this room needs numpy; a process that holds no arrays does not import this module.

An account asks an `Each` for a row of numbers for every observer: `one_by_one` computes them here,
`cluster/blocks.py` on several cores. The caller owes rows that depend on nothing but their number: then both give the
same bits. Whoever gets rows does not change them.

Who asks may say what it does next, which is then done `meanwhile` if others compute the rows. It may as well not be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]

Row = Callable[[int], Floats]
Work = Callable[[], None]


class Each(Protocol):
    """Returns so many rows, those of 0, 1, …; some may be longer than others."""

    def __call__(self, count: int, row: Row, meanwhile: Work | None = None) -> list[Floats]: ...


def one_by_one(count: int, row: Row, meanwhile: Work | None = None) -> list[Floats]:  # noqa: ARG001
    return [row(number) for number in range(count)]


class Steps(np.ndarray[Any, np.dtype[np.float64]]):
    """Floats that are whole multiples of 2^`exponent`, to be sent as these whole numbers."""

    exponent: int


def in_steps(values: Floats, exponent: int) -> Steps:
    """Return the same floats as what is to be sent in steps; whatever is computed from it is of no use."""
    found = values.view(Steps)
    found.exponent = exponent
    return found
