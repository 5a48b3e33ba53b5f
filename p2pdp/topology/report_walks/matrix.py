"""The walk of a report on a graph, as sparse matrices [LTT22, section 4.1].

In each round a report moves to a uniform neighbour of its holder, or stays with probability `stay`. Row j of P^t is
the law of a report's place that began at user j. A user without neighbours keeps what it has.

Guarantee: rows of P add up to 1 up to rounding, and every law here is a sequence of sparse products, so it is exact
up to about t times 1e-16 of itself. `stationary` is the law that a connected graph keeps, d_i / 2|E|.

`expected_empty` is the number of users who hold no report in the end, and so send a dummy [LTT22, Algorithm 2].
Reports walk independently, so place i is empty with probability e_i, the product over j of 1 - P_j(i). The variance
of the number of empty places is sum e_i (1 - e_i), less what a report here cannot do there: to first order
sum over j of (sum over i of P_j(i) e_i)^2. After mixing every law is the stationary one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.topology.graphs import Graph

LAWS_MAX: Final = 4096  # users for which all laws are held at once: 128 MiB
EDGES_MAX: Final = 50_000_000


@dataclass(frozen=True, eq=False)
class WalkMatrix:
    """`forward` is P and `backward` its transpose, which carries laws on; both are sparse arrays."""

    n: int
    stay: float
    degrees: Ints
    forward: Any
    backward: Any

    @property
    def stationary(self) -> Floats:
        edges = int(self.degrees.sum())
        return np.asarray(self.degrees / edges if edges else np.full(self.n, 1.0 / self.n), dtype=np.float64)

    @property
    def weights(self) -> Floats:
        """Return degrees, but 1 for a user without neighbours: reversibility weighs places with them."""
        return np.asarray(np.maximum(self.degrees, 1), dtype=np.float64)


def check_stay(stay: float) -> None:
    if not 0.0 <= stay < 1.0:
        raise UsageError("[shuffle] stay: a report stays with a probability from 0 to below 1.")


def ends_of(graph: Graph) -> tuple[Ints, Ints, Ints]:
    """Return degrees, and both ends of every edge in both directions."""
    degrees = np.array([graph.degree(node) for node in range(graph.n)], dtype=np.int64)
    if int(degrees.sum()) > 2 * EDGES_MAX:
        raise UsageError(f"a walk on {int(degrees.sum()) // 2} edges does not fit: at most {EDGES_MAX} do.")
    heads = np.repeat(np.arange(graph.n), degrees)
    tails = np.fromiter(itertools.chain.from_iterable(graph.neighbours), dtype=np.int64, count=len(heads))
    return degrees, heads, tails


def walk_matrix(graph: Graph, stay: float = 0.0, away: Collection[int] = ()) -> WalkMatrix:
    """Return the walk on this graph; `stay` is the probability to remain where it is in a round.

    In a round in which some users are away, reports that they hold stay, and so do those that were meant for them.
    """
    from scipy.sparse import csr_array

    check_stay(stay)
    degrees, heads, tails = ends_of(graph)
    users = np.arange(graph.n)
    kept = np.where(degrees == 0, 1.0, stay)
    at_home = np.nonzero(kept)[0]
    values = np.concatenate(((1.0 - stay) / degrees[heads], kept[at_home]))
    if away:
        gone = np.zeros(graph.n, dtype=bool)
        gone[list(away)] = True
        tails = np.where(gone[heads] | gone[tails], heads, tails)  # what lands on one place is added up
    rows, columns = np.concatenate((heads, users[at_home])), np.concatenate((tails, users[at_home]))
    narrow = rows.astype(np.int32), columns.astype(np.int32)  # half as much to read as with int64
    forward = csr_array((values, narrow), shape=(graph.n, graph.n))
    return WalkMatrix(graph.n, stay, degrees, forward, forward.T.tocsr())


def symmetric_form(walk: WalkMatrix) -> Any:
    """Return D^(1/2) P D^(-1/2), with the eigenvalues of P; its first eigenvector is the root of `stationary`."""
    from scipy.sparse import coo_array

    entries = walk.forward.tocoo()
    root = np.sqrt(walk.weights)
    rows, columns = entries.coords
    values = entries.data * root[rows] / root[columns]
    whole = coo_array((values, (rows, columns)), shape=(walk.n, walk.n)).tocsr()
    return (whole + whole.T) * 0.5  # rounding aside, it is symmetric already


def point_laws(walk: WalkMatrix, starts: Ints) -> Floats:
    """Return one column for each start, where its report is before the first round."""
    laws = np.zeros((walk.n, len(starts)))
    laws[starts, np.arange(len(starts))] = 1.0
    return laws


def after(walk: WalkMatrix, laws: Floats, rounds: int) -> Floats:
    """Return laws, one a column, so many rounds later."""
    for _ in range(rounds):
        laws = walk.backward @ laws
    return laws


def all_laws(walk: WalkMatrix, rounds: int) -> Floats:
    """Return P^t, row j being the law of user j's report; for small graphs only."""
    if walk.n > LAWS_MAX:
        raise UsageError(f"the laws of all {walk.n} users do not fit at once: at most {LAWS_MAX} do.")
    return np.ascontiguousarray(after(walk, np.eye(walk.n), checked_rounds(rounds)).T)


def checked_rounds(rounds: int) -> int:
    if rounds < 0:
        raise UsageError("[shuffle] rounds: must be a whole number of at least 0.")
    return rounds


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
