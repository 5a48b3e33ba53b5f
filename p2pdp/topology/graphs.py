"""Graphs as frozen values, and the one way to make the static kinds of a spec's `[graph]` section.

A `Graph` is simple and undirected: its rows of neighbours are sorted and symmetric and hold no
loops, checked when it is made. `make_graph` depends on its arguments alone, so every process that
knows the spec, the real number of nodes and the seed makes the same graph, and `Graph.digest` names
it. The complete graph stores no edges: its rows are computed when they are read.

The caller gives the number of nodes that really take part. `RunFailed` says that the kind has no
graph for that number; `UsageError` says that the section itself cannot be followed. Files are not
read here: kind `file` takes an `EdgeList` that `files.edges` has read.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, overload

import numpy as np

from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.kinds import FIXED_KINDS, RANDOM_KINDS, draw_edges

_PUBLIC_KINDS: Final = frozenset({"complete", "ring", "file"})
_DRAWS_MAX: Final = 100


class _AllBut(Sequence[int]):
    """The numbers 0 to n - 1 without one of them, without storing them."""

    __slots__ = ("_left_out", "_n")

    def __init__(self, left_out: int, n: int) -> None:
        self._left_out = left_out
        self._n = n

    def __len__(self) -> int:
        return self._n - 1

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        places = range(self._n - 1)[index]
        if isinstance(places, range):
            return tuple(place + (place >= self._left_out) for place in places)
        return places + (places >= self._left_out)

    def __iter__(self) -> Iterator[int]:
        yield from range(self._left_out)
        yield from range(self._left_out + 1, self._n)

    def __contains__(self, value: object) -> bool:
        return value != self._left_out and value in range(self._n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class _Everybody(Sequence[Sequence[int]]):
    """The rows of the complete graph."""

    __slots__ = ("_n",)

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sequence[int], ...]: ...
    def __getitem__(self, index: int | slice) -> Sequence[int] | tuple[Sequence[int], ...]:
        users = range(self._n)[index]
        if isinstance(users, range):
            return tuple(_AllBut(user, self._n) for user in users)
        return _AllBut(users, self._n)


@dataclass(frozen=True, slots=True)
class EdgeList:
    """The largest component of an edge list: node i was called `labels[i]` in the file.

    `edges` has one row (u, v) with u < v for each edge; `components` counts those of the whole file.
    """

    labels: tuple[str, ...]
    edges: Any
    components: int

    @property
    def n(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Graph:
    """`neighbours[u]` lists u's neighbours in ascending order. Equal graphs have equal digests.

    `positions` holds the points of a geometric graph, one row a node, and is None elsewhere.
    """

    n: int
    neighbours: Sequence[Sequence[int]]
    positions: Any = None

    def __post_init__(self) -> None:
        if self.n < 1 or len(self.neighbours) != self.n:
            raise UsageError(f"A graph of {self.n} nodes cannot have {len(self.neighbours)} rows of neighbours.")
        if isinstance(self.neighbours, _Everybody):
            return
        heads, tails = self._ends()
        codes = heads * self.n + tails
        sound = bool(np.all((tails >= 0) & (tails < self.n) & (tails != heads)) and np.all(codes[1:] > codes[:-1]))
        if not sound or not np.array_equal(np.sort(tails * self.n + heads), codes):
            raise UsageError("A graph's rows of neighbours must be sorted, symmetric and free of loops.")

    def _ends(self) -> tuple[Any, Any]:
        """Return both ends of every edge, in both directions, ordered by the first end."""
        heads = np.repeat(np.arange(self.n), [len(row) for row in self.neighbours])
        tails = np.array([v for row in self.neighbours for v in row], dtype=np.int64)
        return heads, tails

    def degree(self, u: int) -> int:
        return len(self.neighbours[u])

    def edges(self) -> Iterator[tuple[int, int]]:
        """Yield each edge once, as (u, v) with u < v, in ascending order."""
        return ((u, v) for u, row in enumerate(self.neighbours) for v in row if u < v)

    @cached_property
    def edge_count(self) -> int:
        return sum(len(row) for row in self.neighbours) // 2

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Return the connected components, each sorted, in the order of their first nodes."""
        if self._complete:
            return (tuple(range(self.n)),)
        seen = bytearray(self.n)
        found = []
        for root in range(self.n):
            if seen[root]:
                continue
            seen[root] = 1
            reached = [root]
            for u in reached:
                fresh = [v for v in self.neighbours[u] if not seen[v]]
                for v in fresh:
                    seen[v] = 1
                reached += fresh
            found.append(tuple(sorted(reached)))
        return tuple(found)

    @property
    def connected(self) -> bool:
        return len(self.components) == 1

    @cached_property
    def bipartite(self) -> bool:
        """Return whether two colours suffice; a graph without edges is bipartite."""
        if self._complete:
            return self.n <= 2
        colours: dict[int, int] = {}
        for root in range(self.n):
            if root in colours:
                continue
            colours[root] = 0
            reached = [root]
            for u in reached:
                for v in self.neighbours[u]:
                    if v not in colours:
                        colours[v] = 1 - colours[u]
                        reached.append(v)
                    elif colours[v] == colours[u]:
                        return False
        return True

    @cached_property
    def digest(self) -> bytes:
        """Return 32 bytes that name nodes and edges; positions are left out, they only explain the edges."""
        state = hashlib.blake2b(self.n.to_bytes(8, "big"), digest_size=32, person=b"p2pdp graph 1")
        if self._complete:
            state.update(b"complete")
        else:
            heads, tails = self._ends()
            once = heads < tails
            state.update(np.column_stack((heads[once], tails[once])).astype(">u4").tobytes())
        return state.digest()

    @property
    def _complete(self) -> bool:
        return isinstance(self.neighbours, _Everybody) or self.edge_count == self.n * (self.n - 1) // 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def graph_of_edges(n: int, edges: Any, positions: Any = None) -> Graph:
    """Return the graph on n nodes with these edges, an array with one row (u, v) for each of them.

    The order of the ends does not matter, loops are dropped and repeated edges are merged.
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    codes = np.unique(np.concatenate((pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0])))
    tails = (codes % n).tolist()
    cuts = np.searchsorted(codes, np.arange(n + 1) * n).tolist()
    return Graph(n, tuple(tuple(tails[start:end]) for start, end in itertools.pairwise(cuts)), positions)


def complete_graph(n: int) -> Graph:
    return Graph(n, _Everybody(n))


def is_public(part: GraphPart) -> bool:
    """Return whether everybody may know the whole graph: as given, else true for complete, ring and file."""
    return part.kind in _PUBLIC_KINDS if part.public is None else part.public


def make_graph(part: GraphPart, n: int, seed: int, edges: EdgeList | None = None) -> Graph:
    """Return the graph of this section for n nodes; random kinds are drawn from the seed until one is connected."""
    if n < 1:
        raise UsageError(f"A graph needs at least one node, not {n}.")
    if part.changing:
        raise UsageError("[graph] changing: changing graphs come with gossip; this protocol needs one that stays.")
    if part.kind == "complete":
        return complete_graph(n)
    if part.kind in FIXED_KINDS:
        return graph_of_edges(n, FIXED_KINDS[part.kind](part, n))
    if part.kind == "file":
        return _from_file(n, edges)
    if part.kind not in RANDOM_KINDS:
        raise UsageError(f'[graph] kind: there is no kind "{part.kind}".')
    for attempt in range(_DRAWS_MAX):
        drawn, positions = draw_edges(part, n, seed, attempt)
        graph = graph_of_edges(n, drawn, positions)
        if graph.connected:
            return graph
    raise UsageError(
        f"[graph] {part.kind}: {_DRAWS_MAX} draws for {n} nodes were all disconnected; give the nodes more edges.",
    )


def _from_file(n: int, edges: EdgeList | None) -> Graph:
    if edges is None:
        raise UsageError('[graph] path: kind "file" needs an edge list that has been read.')
    if edges.n != n:
        raise RunFailed(f"[graph] path: the largest component of the edge list has {edges.n} nodes, the run has {n}.")
    return graph_of_edges(n, edges.edges)
