"""Weights: how far each end of an edge moves towards the other in a round of gossip.

    metropolis   1 / (1 + max(d_u, d_v))   as the code of [CEBM22] has it: always converges
    maxdegree    1 / (1 + d_max)           d_max over the whole graph, which is public then
    lazy         1 / (2 max(d_u, d_v))     half of what follows, so that half stays at home
    uniform      1 / max(d_u, d_v)         min(1/d_u, 1/d_v), as [CEBM22] prints it

A node knows its own weights from its own degree and those of its neighbours (and d_max). Every kind gives a
symmetric matrix with rows that add up to 1, what is left of a row staying on its diagonal. With `uniform`
nothing is left on a regular graph: on one that is bipartite too (even rings, hypercubes, grids that close) the
two sides exchange their values for ever, so that is refused by `check_convergence`.

On a graph that changes, `meeting_weights` are those of the pairs that met in one round, by that round's degrees;
`drawn_pairs` draws who meets, for simulations and forecasts: users of a run toss for it in secret.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.topology.graphs import Graph

METROPOLIS: Final = "metropolis"
MAXDEGREE: Final = "maxdegree"
LAZY: Final = "lazy"
UNIFORM: Final = "uniform"
WEIGHTS: Final = (METROPOLIS, MAXDEGREE, LAZY, UNIFORM)
_ROUNDING: Final = 1e-12


def edge_weight(weights: str, degree: int, other_degree: int, degree_max: int) -> Fraction:
    """Return the weight of an edge between nodes of these degrees, as an exact number."""
    largest = max(degree, other_degree)
    divisors = {METROPOLIS: 1 + largest, MAXDEGREE: 1 + degree_max, LAZY: 2 * largest, UNIFORM: largest}
    if weights not in divisors:
        raise UsageError(f'[graph] weights: there are no "{weights}" weights; there are {", ".join(WEIGHTS)}.')
    if not 1 <= largest <= degree_max:
        raise UsageError("An edge has ends of degree 1 at least and of the largest degree at most.")
    return Fraction(1, divisors[weights])


def largest_degree(graph: Graph) -> int:
    return max(graph.degree(node) for node in range(graph.n))


def sparse_weights(graph: Graph, weights: str) -> Any:
    """Return the matrix as a sparse array of floats, its diagonal included."""
    import numpy as np
    from scipy.sparse import csr_array

    degrees = np.array([graph.degree(node) for node in range(graph.n)], dtype=np.int64)
    heads = np.repeat(np.arange(graph.n), degrees)
    tails = np.fromiter((v for row in graph.neighbours for v in row), dtype=np.int64, count=int(degrees.sum()))
    largest = np.maximum(degrees[heads], degrees[tails])
    divisors = {METROPOLIS: 1 + largest, LAZY: 2 * largest, UNIFORM: largest}
    divisor = divisors.get(weights, np.full(len(heads), 1 + int(degrees.max(initial=0))))
    if weights not in WEIGHTS:
        edge_weight(weights, 1, 1, 1)
    values = 1.0 / divisor
    left = 1.0 - np.bincount(heads, weights=values, minlength=graph.n)
    left[np.abs(left) < _ROUNDING] = 0.0  # what thirds or sevenths leave of a whole
    everybody = np.arange(graph.n)
    rows, columns = np.concatenate([heads, everybody]), np.concatenate([tails, everybody])
    return csr_array((np.concatenate([values, left]), (rows, columns)), shape=(graph.n, graph.n))


def check_convergence(graph: Graph, weights: str) -> None:
    """Refuse what would never come to an average."""
    if graph.n > 1 and not graph.connected:
        raise UsageError("[graph] kind: the graph is not connected, so no gossip on it comes to one average.")
    regular = len({graph.degree(node) for node in range(graph.n)}) == 1
    if weights == UNIFORM and graph.n > 1 and regular and graph.bipartite:
        raise UsageError(
            '[graph] weights: "uniform" leaves nothing on the diagonal of a regular graph, and on one that is '
            'bipartite the two sides would exchange their values for ever; choose "metropolis" or "lazy".'
        )


def drawn_pairs(n: int, coin: float, generator: np.random.Generator) -> Any:
    """Return each pair (u, v), u < v, with this probability, a row each."""
    starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, 0, -1))])  # of each user's pairs with higher numbers
    count = generator.binomial(int(starts[-1]), coin)
    chosen = np.sort(generator.choice(int(starts[-1]), count, replace=False)) if count else np.zeros(0, np.int64)
    lower = np.searchsorted(starts, chosen, side="right") - 1
    return np.column_stack([lower, chosen - starts[lower] + lower + 1])


def meeting_weights(n: int, pairs: Any, weights: str, degree_max: int) -> Any:
    """Return the symmetric sparse matrix, its diagonal included; `pairs` has a row (u, v) for each pair, once.

    `degree_max` is the largest degree that there may be, which the users know beforehand.
    """
    from scipy.sparse import csr_array

    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    degrees = np.bincount(ends.reshape(-1), minlength=n)
    largest = degrees[ends].max(axis=1)
    different, places = np.unique(largest, return_inverse=True)
    of_degree = np.array([float(edge_weight(weights, one, one, degree_max)) for one in different.tolist()])
    values = of_degree[places] if len(ends) else np.zeros(0)
    heads, tails = np.concatenate([ends, ends[:, ::-1]]).T
    left = 1.0 - np.bincount(heads, np.concatenate([values, values]), minlength=n)
    everybody = np.arange(n)
    rows, columns = np.concatenate([heads, everybody]), np.concatenate([tails, everybody])
    return csr_array((np.concatenate([values, values, left]), (rows, columns)), shape=(n, n))
