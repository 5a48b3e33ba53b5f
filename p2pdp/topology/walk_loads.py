"""The number of users who hold no report in the end, and so send a dummy [LTT22, Algorithm 2].

Reports walk independently, so place i is empty with probability e_i, the product over j of 1 - P_j(i). The variance
of the number of empty places is sum e_i (1 - e_i), less what a report here cannot do there: to first order
sum over j of (sum over i of P_j(i) e_i)^2. After mixing every law is the stationary one.
"""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.topology.graphs import Graph
from p2pdp.topology.walk_matrix import LAWS_MAX, all_laws, ends_of, walk_matrix


def expected_empty(graph: Graph, stay: float, rounds: int) -> tuple[float, float]:
    """Return mean and variance of the number of users without a report after so many rounds.

    On small graphs by all laws, on large ones as if walks had mixed.
    """
    if graph.n <= LAWS_MAX // 4:
        return empty_places(all_laws(walk_matrix(graph, stay), rounds))
    if graph.edge_count == graph.n * (graph.n - 1) // 2:
        return empty_places_at_rest(np.full(graph.n, 1.0 / graph.n))
    degrees = ends_of(graph)[0]
    return empty_places_at_rest(np.asarray(degrees / max(1, int(degrees.sum())), dtype=np.float64))


def empty_places(laws: Floats) -> tuple[float, float]:
    """Return mean and variance of the number of users without a report; row j is the law of report j."""
    with np.errstate(divide="ignore"):
        empty = np.exp(np.log1p(-np.minimum(laws, 1.0)).sum(axis=0))  # sums may be rounded up
    return _moments(empty, laws @ empty)


def empty_places_at_rest(stationary: Floats) -> tuple[float, float]:
    """Return the same where every report's place has this law."""
    n = len(stationary)
    with np.errstate(divide="ignore"):
        empty = np.exp(n * np.log1p(-stationary))
    return _moments(empty, np.full(n, float(stationary @ empty)))


def _moments(empty: Floats, found_empty: Floats) -> tuple[float, float]:
    variance = float(np.sum(empty * (1.0 - empty)) - np.sum(found_empty**2))
    return float(empty.sum()), max(0.0, variance)
