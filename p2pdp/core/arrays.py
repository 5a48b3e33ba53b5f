"""The names of array types, so that signatures say which numbers an array holds.

Nothing else in this room needs numpy; a process that holds no arrays does not import this module.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]
