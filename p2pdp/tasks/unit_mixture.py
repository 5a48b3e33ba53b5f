"""Synthetic unit vectors of two kinds, as in section 5.6 of `papers/003`: for comparing what protocols can do.

The first half of the users have N(1, 1) in each of the coordinates, the others N(10, 1), each scaled to length 1. The
paper sets 200 coordinates. Most of a vector of the second kind is the same for all users; of the first kind, noise.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

DIMENSIONS: Final = 200
MEANS: Final = (1.0, 10.0)


def unit_mixture(users: int, generator: np.random.Generator, dimensions: int = DIMENSIONS) -> npt.NDArray[np.float64]:
    """One row of length 1 for each user."""
    means = np.where(np.arange(users) < users // 2, *MEANS)
    rows = means[:, None] + generator.standard_normal((users, dimensions))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
