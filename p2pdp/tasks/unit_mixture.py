"""Synthetic unit vectors of two kinds, as in [LTT22, section 5.6]: for comparing what protocols can do.

The first half of the users have N(1, 1) in each of the coordinates, the others N(10, 1), each scaled to length 1. The
paper sets 200 coordinates. Most of a vector of the second kind is the same for all users; of the first kind, noise.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats

DIMENSIONS: Final = 200
MEANS: Final = (1.0, 10.0)


def mixed_direction(user: int, users: int, normals: Floats) -> Floats:
    """Return one user's vector, from independent N(0, 1)."""
    row = MEANS[user >= users // 2] + normals
    return np.asarray(row / np.linalg.norm(row))
