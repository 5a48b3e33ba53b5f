"""The names of array types, so that signatures say which numbers an array holds; and rows, one for each number.

Nothing else in this room needs numpy; a process that holds no arrays does not import this module.

An account asks an `Each` for a row of numbers for every observer: `one_by_one` computes them here,
`cluster/blocks.py` on several cores. The caller owes rows that depend on nothing but their number: then both give the
same bits. Whoever gets rows does not change them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]

Row = Callable[[int], Floats]
Each = Callable[[int, Row], list[Floats]]
"""Returns so many rows, those of 0, 1, …; some may be longer than others."""


def one_by_one(count: int, row: Row) -> list[Floats]:
    return [row(number) for number in range(count)]


class Steps(np.ndarray[Any, np.dtype[np.float64]]):
    """Floats that are whole multiples of 2^`exponent`, to be sent as these whole numbers."""

    exponent: int


def in_steps(values: Floats, exponent: int) -> Steps:
    """Return the same floats as what is to be sent in steps; whatever is computed from it is of no use."""
    found = values.view(Steps)
    found.exponent = exponent
    return found
