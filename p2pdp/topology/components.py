"""Components of what is left of a graph once some of its users are gone or collude.

Noise that cancels between pairs hides a user among the honest users whom it reaches over edges between honest users
(guide/accounting.md, section 7). Who will be missing is not known in advance, so placements are drawn at random, from a
seed: `placements` says how large the smallest component that is left was in each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.topology.graphs import Graph

PLACEMENTS: Final = 200
_EDGES_AT_ONCE: Final = 2_000_000


def component_sizes(graph: Graph, without: Collection[Peer] = ()) -> Ints:
    """Return the size of each user's component once these users are taken out; 0 for themselves."""
    left = np.ones(graph.n, dtype=np.bool_)
    left[list(without)] = False
    if is_complete(graph):
        return np.where(left, np.count_nonzero(left), 0)
    heads, tails = ends_of(graph)
    labels = _labels(graph.n, heads, tails, left)
    return np.where(left, np.bincount(labels, minlength=graph.n)[labels], 0)


def component_labels(graph: Graph, without: Collection[Peer] = ()) -> Ints:
    """Return for each user the lowest number in its component; users that are taken out are alone."""
    left = np.ones(graph.n, dtype=np.bool_)
    left[list(without)] = False
    heads, tails = ends_of(graph)
    return _labels(graph.n, heads, tails, left)


@dataclass(frozen=True, slots=True)
class Placements:
    """The effect of taking out as many users at random: `left` are left, in `smallest[i]` the smallest component."""

    left: int
    smallest: tuple[int, ...]

    @property
    def broken(self) -> float:
        """Return the share of placements in which those who are left are not connected."""
        return sum(size < self.left for size in self.smallest) / len(self.smallest)

    @property
    def typical(self) -> int:
        """Return how many hide each other: all that are left if they are connected at least as often as not.

        Otherwise the median of the smallest component, rounded down.
        """
        return self.left if self.broken <= 0.5 else int(np.median(self.smallest))


def placements(
    graph: Graph, removed: int, seed: int, *, among: Collection[Peer] | None = None, count: int = PLACEMENTS
) -> Placements:
    """Take out `removed` users at random, again and again. Users who are not `among` those are out in any case."""
    present = list(range(graph.n)) if among is None else sorted(among)
    left = len(present) - removed
    if removed < 0 or left < 1:
        raise UsageError(f"Of {len(present)} users {removed} cannot be taken out so that one is left.")
    if is_complete(graph) or removed == 0:
        fixed = component_sizes(graph, sorted(set(range(graph.n)) - set(present)))[present]
        return Placements(left, (left if is_complete(graph) else int(fixed.min()),) * count)
    heads, tails = ends_of(graph)
    at_once = max(1, _EDGES_AT_ONCE // max(1, len(heads)))
    found: list[int] = []
    for begin in range(0, count, at_once):
        numbers = range(begin, min(begin + at_once, count))
        stays = np.stack([_stays(graph.n, present, removed, seed, number) for number in numbers])
        copies = np.arange(len(numbers))[:, None] * graph.n
        labels = _labels(stays.size, (copies + heads).ravel(), (copies + tails).ravel(), stays.ravel())
        sizes = np.bincount(labels, minlength=stays.size)[labels].reshape(stays.shape)
        found += np.where(stays, sizes, graph.n).min(axis=1).tolist()
    return Placements(left, tuple(found))


def is_complete(graph: Graph) -> bool:
    """Return whether all users are neighbours, so that it does not matter who is taken out."""
    return graph.edge_count == graph.n * (graph.n - 1) // 2


def ends_of(graph: Graph) -> tuple[Ints, Ints]:
    """Return both ends of each edge, the lower user first."""
    edges = np.fromiter((user for edge in graph.edges() for user in edge), dtype=np.int64).reshape(-1, 2)
    return edges[:, 0], edges[:, 1]


def taken_out(present: Sequence[Peer], removed: int, seed: int, number: int) -> list[Peer]:
    """Return the users who are taken out of those present in this placement, in ascending order."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed % 2**64, number], dtype=np.uint64)))
    order = np.argsort(random.random(len(present)), kind="stable")
    return sorted(present[place] for place in order[:removed].tolist())


def _stays(n: int, present: Sequence[Peer], removed: int, seed: int, number: int) -> Bools:
    stays = np.zeros(n, dtype=np.bool_)
    stays[list(present)] = True
    stays[taken_out(present, removed, seed, number)] = False
    return stays


def _labels(n: int, heads: Ints, tails: Ints, left: Bools) -> Ints:
    """Return the lowest number in each component: roots of neighbours are joined until none differ."""
    kept = left[heads] & left[tails]
    heads, tails = heads[kept], tails[kept]
    labels = np.arange(n)
    while len(heads):
        one, other = labels[heads], labels[tails]
        apart = one != other
        if not apart.any():
            break
        heads, tails = heads[apart], tails[apart]
        np.minimum.at(labels, np.maximum(one, other)[apart], np.minimum(one, other)[apart])
        while not np.array_equal(labels, labels[labels]):
            labels = labels[labels]
    return labels
