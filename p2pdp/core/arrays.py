"""The names of array types, so that signatures say which numbers an array holds.

Nothing else in this room needs numpy; a process that holds no arrays does not import this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]


class Steps(np.ndarray[Any, np.dtype[np.float64]]):
    """Floats that are whole multiples of 2^`exponent`, to be sent as these whole numbers."""

    exponent: int


def in_steps(values: Floats, exponent: int) -> Steps:
    """Return the same floats as what is to be sent in steps; whatever is computed from it is of no use."""
    found = values.view(Steps)
    found.exponent = exponent
    return found
