"""Symmetric weights on a graph, and what their spectrum says.

`metropolis` weights are 1/(1 + max(d_u, d_v)) on edges, with the rest on the diagonal, as the code of the papers
has them; `printed` ones min(1/d_u, 1/d_v), as `papers/004` prints them: on regular graphs their diagonal is 0,
and on bipartite ones gossip with them does not converge. Matrices are dense: for graphs of some thousand nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from p2pdp.topology.graphs import Graph

Floats = npt.NDArray[np.float64]

METROPOLIS: Final = "metropolis"
PRINTED: Final = "printed"
_ROUNDING: Final = 1e-12  # gaps below this are none


def weight_matrix(graph: Graph, weights: str) -> Floats:
    """Symmetric and doubly stochastic, zero where there is no edge."""
    degrees = np.array([graph.degree(u) for u in range(graph.n)], dtype=np.float64)
    if weights == METROPOLIS:
        degrees += 1.0
    matrix = np.zeros((graph.n, graph.n))
    for u, row in enumerate(graph.neighbours):
        places = np.fromiter(row, dtype=np.int64, count=len(row))
        matrix[u, places] = 1.0 / np.maximum(degrees[u], degrees[places])
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    return matrix


def spectral_gap(matrix: Floats) -> float:
    """1 minus the largest absolute value of the other eigenvalues (`papers/004`, Definition 2), or 0."""
    values = np.linalg.eigvalsh(matrix)
    gap = 1.0 - max(abs(float(values[0])), abs(float(values[-2]))) if len(values) > 1 else 1.0
    return gap if gap > _ROUNDING * len(values) else 0.0


def log_resolvent(matrix: Floats) -> Floats:
    """-ln(I - W + 11'/n) of a symmetric W of a connected graph, whose eigenvalue 1 belongs to the mean alone."""
    values, vectors = np.linalg.eigh(matrix)
    others = vectors[:, :-1]
    return np.asarray(-(others * np.log1p(-values[:-1])) @ others.T)
