"""The spectrum of a symmetric stochastic matrix: its ends, by Lanczos where it is large, and its logarithm.

Guarantee: an end found by Lanczos is an eigenvalue within the residual that was measured, and the gap is
rounded down by it. That no larger eigenvalue was missed is not proved: Lanczos from a random start misses one
with probability 0 in exact arithmetic, which is said where it matters. On a ring eigenvalues are cosines, and known.

How long Lanczos takes follows from the gap, of which the distances from one end of the graph give an upper end before.
Where it would take too long, eigenvalues of a path are had by bisection, and other graphs are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import Refused

DENSE_MAX: Final = 600
_ROUNDING: Final = 1e-12
_WORK_MAX: Final = 4e10  # multiplications of Lanczos: some minutes at most
_STEPS: Final = 12.0  # of Lanczos, over the root of the gap
_KEPT: Final = 40  # multiplications with vectors that are kept, for each user in a step


@dataclass(frozen=True, slots=True)
class SpectrumEnds:
    """The second largest and the smallest eigenvalue, and how far off each may be."""

    second: float
    last: float
    residual: float

    @property
    def gap(self) -> float:
        """Return 1 minus the largest absolute value of the other eigenvalues, rounded down; 0 if there is none."""
        gap = 1.0 - max(abs(self.second), abs(self.last)) - self.residual
        return gap if gap > _ROUNDING else 0.0


def spectrum_ends(matrix: Any, first: Any = None) -> SpectrumEnds:
    """Return the ends of a symmetric matrix, sparse or dense, whose first eigenvalue is 1.

    `first` is its eigenvector, of length 1; None stands for that of a stochastic matrix, whose entries are alike.
    """
    size = matrix.shape[0]
    if size == 1:
        return SpectrumEnds(0.0, 0.0, 0.0)
    if size <= DENSE_MAX:
        values = np.linalg.eigvalsh(_dense(matrix))
        return SpectrumEnds(float(values[-2]), float(values[0]), size * float(np.finfo(np.float64).eps))
    on_ring = _ends_on_ring(matrix)
    if on_ring is not None:
        return on_ring
    from scipy.sparse.linalg import LinearOperator, eigsh

    known = np.full(size, size**-0.5) if first is None else first  # without it the second becomes the first
    most = gap_at_most(matrix, known)
    if _STEPS * (np.count_nonzero(_entries(matrix)) + _KEPT * size) > _WORK_MAX * math.sqrt(max(most, 0.0)):
        on_path = _ends_on_path(matrix)
        if on_path is not None:
            return on_path
        raise Refused(
            f"[graph]: it mixes so slowly that its spectral gap, at most {most:.2g} for {size:,} users, takes too long "
            "to compute; use a graph of smaller diameter"
        )
    rest = LinearOperator((size, size), matvec=lambda x: matrix @ x - known * (known @ x), dtype=np.float64)
    start = np.random.Generator(np.random.Philox(key=1)).standard_normal(size)
    ends, residual = [], 0.0
    for which in ("LA", "SA"):
        values, vectors = eigsh(rest, k=1, which=which, v0=start, tol=1e-10)
        ends.append(float(values[0]))
        residual = max(residual, float(np.linalg.norm(rest @ vectors[:, 0] - values[0] * vectors[:, 0])))
    return SpectrumEnds(ends[0], ends[1], residual)


def _ends_on_ring(matrix: Any) -> SpectrumEnds | None:
    """Return the ends where all edges of a ring have one weight, for which Lanczos takes n^2 steps; else None."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size, entries, diagonal = matrix.shape[0], coo_array(matrix), matrix.diagonal()
    rows, columns = entries.coords
    across = (rows != columns) & (entries.data != 0.0)
    weights = entries.data[across]
    if np.any(np.bincount(rows[across], minlength=size) != 2) or connected_components(entries, directed=False)[0] > 1:
        return None
    spread = 2.0 * float(np.ptp(weights)) + float(np.ptp(diagonal))
    if spread > _ROUNDING:
        return None
    kept, moved = float(diagonal[0]), 2.0 * float(weights[0])
    turns = [2.0 * math.pi * number / size for number in (1, size // 2)]
    second, last = (kept + moved * math.cos(turn) for turn in turns)
    return SpectrumEnds(second, last, spread + 8.0 * float(np.finfo(np.float64).eps))


def gap_at_most(matrix: Any, first: Floats) -> float:
    """Return an upper end of 1 minus the second eigenvalue: how little distances from one end change in a round."""
    from scipy.sparse.csgraph import breadth_first_order

    away = np.zeros(matrix.shape[0])
    begin = 0
    for _ in range(2):  # the user farthest from any one is at an end
        order, before = breadth_first_order(matrix, begin, directed=False)
        away[:] = 0.0
        for at in order[1:].tolist():
            away[at] = away[before[at]] + 1.0
        begin = int(order[-1])
    tried = away * first
    tried -= first * float(first @ tried)
    square = float(tried @ tried)
    return 1.0 - float(tried @ (matrix @ tried)) / square if square > 0.0 else 1.0


def _ends_on_path(matrix: Any) -> SpectrumEnds | None:
    """Return the ends where the users stand in one line, whatever its weights; else None."""
    from scipy.linalg import eigvalsh_tridiagonal
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    size, entries = matrix.shape[0], coo_array(matrix)
    rows, columns = entries.coords
    degrees = np.bincount(rows[(rows != columns) & (entries.data != 0.0)], minlength=size)
    ends = np.flatnonzero(degrees == 1)
    if len(ends) != 2 or degrees.max() > 2:
        return None
    order, _ = breadth_first_order(matrix, int(ends[0]), directed=False)
    if len(order) < size:
        return None
    place = np.argsort(order)
    beside = np.zeros(size - 1)
    right = place[columns] == place[rows] + 1
    beside[place[rows[right]]] = entries.data[right]
    along = matrix.diagonal()[order]
    second, last = (
        float(eigvalsh_tridiagonal(along, beside, select="i", select_range=(at, at), lapack_driver="stebz")[0])
        for at in (size - 2, 0)
    )
    return SpectrumEnds(second, last, 64.0 * float(np.finfo(np.float64).eps))


def log_resolvent(matrix: Any) -> Any:
    """Return -ln(I - W + 11'/n) of a symmetric W of a connected graph, whose eigenvalue 1 belongs to the mean."""
    values, vectors = np.linalg.eigh(_dense(matrix))
    others = vectors[:, :-1]
    return -(others * np.log1p(-values[:-1])) @ others.T


def _entries(matrix: Any) -> Any:
    return matrix.data if hasattr(matrix, "toarray") else np.asarray(matrix)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
