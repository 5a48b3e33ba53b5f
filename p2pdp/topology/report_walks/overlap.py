"""The overlap kappa of two users' walks: min over i of P_j(i) / P_u(i), over the places i of u's report.

With probability kappa the place of j's report is drawn from the law of u's, which is what hides u (guide/accounting.md,
section 4). On small graphs every kappa is computed; on large ones kappa is at least (1 - eta) / (1 + eta)
(`mixing.py`), the same for all pairs. On the complete graph both are known in closed form. The least kappa needs no
pair: at each place it is the least chance over the largest, so some places at a time are enough.

Guarantee: no kappa is above the truth: each is rounded down by what t rounds of sums may be off.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.core.arrays import Each, Floats, one_by_one
from p2pdp.core.errors import Refused, UsageError
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import (
    LAWS_MAX,
    WalkMatrix,
    all_laws,
    check_stay,
    checked_rounds,
    point_laws,
    walk_matrix,
)
from p2pdp.topology.report_walks.mixing import mixing_of

_ROUNDING: Final = 1e-14  # relative, of one round's sums
_MARGIN: Final = 1e-12
_BLOCK: Final = 64
_WORK_MAX: Final = 4e10  # multiplications


def overlaps(law: Floats, laws: Floats, rounds: int) -> Floats:
    """Return the kappa of each row of `laws` with one law, after at most so many rounds of sums.

    The law may be any of a user's report as the observer knows it: one that was seen at a relay restarts there.
    """
    places = np.nonzero(law > 0.0)[0]
    least = (laws[:, places] / law[places]).min(axis=1)
    return np.asarray(np.minimum(1.0, least) * _margin(rounds))


def overlaps_of_laws(laws: Floats, rounds: int) -> Floats:
    """Return kappa_j for every j in row u, and 1 for u, from all laws, one a row; for small graphs only."""
    found = np.array([overlaps(law, laws, rounds) for law in laws])
    np.fill_diagonal(found, 1.0)
    return found


def least_overlaps(laws: Floats, rounds: int) -> Floats:
    """Return the least kappa of each user with the others, the same bits as those of all pairs; 1 for nobody else."""
    if len(laws) == 1:
        return np.ones(1)
    least, second = np.partition(laws, 1, axis=0)[:2]
    found = np.empty(len(laws))
    for user, (law, lowest) in enumerate(zip(laws, laws <= least, strict=True)):
        places = np.nonzero(law > 0.0)[0]
        found[user] = (np.where(lowest, second, least)[places] / law[places]).min()
    return np.asarray(np.minimum(1.0, found) * _margin(rounds))


def least_overlap(walk: WalkMatrix, rounds: int, each: Each = one_by_one) -> float:
    """Return the least kappa of all pairs; `each` computes what some of the places say."""
    checked_rounds(rounds)

    def row(number: int) -> Floats:
        chances = point_laws(walk, np.arange(number * _BLOCK, min(walk.n, (number + 1) * _BLOCK)))
        for _ in range(rounds):
            chances = walk.forward @ chances  # a column a place, a row for where a report began
        return np.array([(chances.min(axis=0) / chances.max(axis=0)).min()])

    return float(np.min(each(-(-walk.n // _BLOCK), row))) * _margin(rounds)


def is_afforded(graph: Graph, rounds: int) -> bool:
    """Return whether `least_overlap` is computed within a minute or so."""
    return float(graph.n) * (2 * graph.edge_count + graph.n) * rounds <= _WORK_MAX


def _margin(rounds: int) -> float:
    return max(0.0, 1.0 - 2.0 * _ROUNDING * (rounds + 1))


def overlap_of_complete(n: int, stay: float, rounds: int) -> float:
    """Return kappa for any two users of a complete graph: all places but their own two are alike to them."""
    if n < 2:
        raise UsageError("an overlap is one of two users.")
    power = (stay - (1.0 - stay) / (n - 1.0)) ** checked_rounds(rounds)
    own, other = (1.0 + (n - 1.0) * power) / n, (1.0 - power) / n
    smallest, largest = max(0.0, min(own, other)), max(own, other)
    return smallest / largest * (1.0 - _MARGIN) if largest > 0.0 else 0.0


def overlap_least(graph: Graph, stay: float, rounds: int) -> tuple[float, str]:
    """Return a kappa for all pairs at once, and where it is from: `exact`, or `spectral` on large graphs.

    A spectral one is 0 where the walk cannot be told to mix; reports are then not claimed to be hidden at all.
    """
    check_stay(stay)
    if graph.n == 1:
        return 1.0, "exact"
    if graph.edge_count == graph.n * (graph.n - 1) // 2:
        return overlap_of_complete(graph.n, stay, rounds), "exact"
    if graph.n <= LAWS_MAX // 4:
        return float(least_overlaps(all_laws(walk_matrix(graph, stay), rounds), rounds).min()), "exact"
    try:
        return mixing_of(graph, stay).overlap(checked_rounds(rounds)), "spectral"
    except (Refused, UsageError):
        return 0.0, "spectral"
