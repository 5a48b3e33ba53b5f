"""How much a report's place is spread: S(t) = sum of P(i)^2 for one start, and how uneven a graph is at rest.

`gamma` is n times the sum of the squared stationary chances, as [LTT22] defines it; 1 on regular graphs. Table 4
there shows other numbers: `gamma_printed` gives those, to the last digit on the four graphs that could be checked. It
puts the row sums of the upper triangle of the adjacency matrix in the place of degrees, so that each edge counts at
its end with the lower number only. That the authors read half of a symmetric matrix is inferred from the agreement.

On a regular graph S(t) is the chance P^(2t)_jj to be back after 2t rounds, a sum of even powers of eigenvalues, so it
falls in every round. What oscillates early in figure 5 of the paper is the factor rho of Theorem 5.4, the largest over
the smallest chance of a place that can be reached.
"""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.topology.graphs import Graph
from p2pdp.topology.walk_matrix import WalkMatrix, checked_rounds, point_laws


def spreads_from(walk: WalkMatrix, starts: Ints, rounds: int) -> Floats:
    """S(0), S(1), … S(rounds), one row a round and one column a start."""
    found = np.empty((checked_rounds(rounds) + 1, len(starts)))
    laws = point_laws(walk, starts)
    for t in range(rounds + 1):
        laws = walk.backward @ laws if t else laws
        found[t] = np.einsum("ij,ij->j", laws, laws)
    return found


def spread_bound(walk: WalkMatrix, alpha: float, rounds: int) -> tuple[float, float]:
    """The upper end for any start after so many rounds, and the paper's equation (7), which misses d_max / d_min.

    ||r_j(t)|| is at most sqrt(d_max / d_j) (1 - alpha)^t, and S = ||pi||^2 + 2 <pi, r_j> + ||r_j||^2.
    """
    rest = float(walk.stationary @ walk.stationary)
    decay = (1.0 - alpha) ** checked_rounds(rounds)
    length = decay * float(np.sqrt(walk.weights.max() / walk.weights.min()))
    return min(1.0, (np.sqrt(rest) + length) ** 2), min(1.0, rest + decay**2)


def gamma(graph: Graph) -> float:
    """The number of users times the sum of the squared stationary chances."""
    degrees = np.array([graph.degree(node) for node in range(graph.n)], dtype=np.float64)
    return _gamma(degrees)


def gamma_printed(n: int, edges: Ints, loops: Ints | None = None) -> float:
    """As [LTT22, Table 4] must have been made: each edge counts at its lower-numbered end only.

    `edges` has a row for each edge; `loops` names the users with a loop, which counts once. Readers of edge lists drop
    loops, and the printed digits need them.
    """
    lower = np.bincount(np.minimum(edges[:, 0], edges[:, 1]), minlength=n)
    return _gamma((lower if loops is None else lower + np.bincount(loops, minlength=n)).astype(np.float64))


def _gamma(weights: Floats) -> float:
    total = float(weights.sum())
    return len(weights) * float(weights @ weights) / total**2 if total else 1.0
