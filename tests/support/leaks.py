"""Leaks of views that are given as dense matrices."""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.linear.view import general_leaks


def general_leak(noise: Floats, inputs: Floats) -> float:
    """Return the leak of one user; `noise` has a column for each draw, in deviations, `inputs` one for each input."""
    rows, draws = np.nonzero(noise)
    at, number = np.nonzero(inputs)
    nobody = np.zeros(len(at), dtype=np.int64)
    return float(
        general_leaks(len(noise), 1, rows, draws, noise[rows, draws], at, nobody, number, inputs[at, number])[0]
    )
