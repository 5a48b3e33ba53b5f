"""How much a report's place is spread, for any starts."""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.topology.report_walks.matrix import WalkMatrix, point_laws


def spreads_from(walk: WalkMatrix, starts: Ints, rounds: int) -> Floats:
    """Return S(0), S(1), … S(rounds), the sums of squares of laws, one row a round and one column a start."""
    found = np.empty((rounds + 1, len(starts)))
    laws = point_laws(walk, starts)
    for t in range(rounds + 1):
        laws = walk.backward @ laws if t else laws
        found[t] = np.einsum("ij,ij->j", laws, laws)
    return found
