"""Edges of all graph kinds, except the complete graph, which needs none.

Each kind gives an array with one row (u, v) for each edge; a row may be a loop or come twice where n
is small, and `topology.graphs` drops those. `RunFailed` says that the kind has no graph of n nodes.

The exponential graph is symmetric here, u linked to u + 2^k and u - 2^k modulo n, because gossip
matrices need undirected graphs; [YYC21], which [CEBM22] cites for it, directs its edges.

`regular`, `erdos_renyi` and `geometric` graphs are drawn. A draw depends on the kind, its parameters, the number of
nodes, the seed and the attempt, and on nothing else: only uniform doubles and sorting are used, because the other
distributions of numpy may change from one release to the next. A draw may be disconnected: `topology.graphs` then draws
again. The seed is public, and so are these graphs to whoever knows it.

Regular graphs are drawn by the pairing of Steger and Wormald (1999), whose distribution is uniform
in the limit of many nodes, not exactly; of degrees above (n - 1)/2 the complement is drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart


def _ring(n: int) -> Any:
    nodes = np.arange(n)
    return np.column_stack((nodes, (nodes + 1) % n))


def _path(n: int) -> Any:
    return _ring(n)[:-1]


def _star(n: int) -> Any:
    """Link all nodes to node 0, the centre."""
    nodes = np.arange(1, n)
    return np.column_stack((np.zeros_like(nodes), nodes))


def _hypercube(n: int) -> Any:
    if n & (n - 1):
        raise RunFailed(f"[graph] kind: there is no hypercube of {n} nodes, only of a power of two.")
    return _linked(n, [np.arange(n) ^ (1 << k) for k in range(n.bit_length() - 1)])


def _exponential(n: int) -> Any:
    return _linked(n, [(np.arange(n) + (1 << k)) % n for k in range((n - 1).bit_length())])


def _linked(n: int, others: list[Any]) -> Any:
    """Link every node u to `other[u]`, for each array in the list."""
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *(np.column_stack((np.arange(n), o)) for o in others)])


def _lattice(part: GraphPart, n: int) -> Any:
    """Make a grid, or a torus, whose rows and columns close into rings; node r * columns + c lies at (r, c)."""
    rows, columns = _sides(part, n)
    places = np.arange(n).reshape(rows, columns)
    if part.kind == "torus":
        return _linked(n, [np.roll(places, -1, axis=axis).reshape(-1) for axis in (0, 1)])
    down = np.column_stack((places[:-1].reshape(-1), places[1:].reshape(-1)))
    right = np.column_stack((places[:, :-1].reshape(-1), places[:, 1:].reshape(-1)))
    return np.concatenate((down, right))


def _sides(part: GraphPart, n: int) -> tuple[int, int]:
    """Return rows and columns: as given, else the divisors of n nearest to a square, fewer rows than columns."""
    if part.rows is None and part.columns is None:
        rows = next(side for side in range(math.isqrt(n), 0, -1) if n % side == 0)
        return rows, n // rows
    rows = part.rows if part.rows is not None else n // (part.columns or 1)
    columns = part.columns if part.columns is not None else n // rows
    if rows * columns != n:
        given = " and ".join(f"{side} = {getattr(part, side)}" for side in ("rows", "columns") if getattr(part, side))
        raise RunFailed(f"[graph] {part.kind}: there is none of {n} nodes with {given}.")
    return rows, columns


FIXED_KINDS: Final[dict[str, Callable[[GraphPart, int], Any]]] = {
    "ring": lambda _, n: _ring(n),
    "path": lambda _, n: _path(n),
    "star": lambda _, n: _star(n),
    "grid": _lattice,
    "torus": _lattice,
    "hypercube": lambda _, n: _hypercube(n),
    "exponential": lambda _, n: _exponential(n),
}

_POINTS_AT_A_TIME: Final = 4096


def draw_edges(part: GraphPart, n: int, seed: int, attempt: int) -> tuple[Any, Any]:
    """Return edges, one row (u, v) each, and the nodes' positions or None."""
    name = f"{part.kind} {n} {seed} {attempt}"
    key = hashlib.blake2b(name.encode(), digest_size=16, person=b"p2pdp graph").digest()
    return RANDOM_KINDS[part.kind](part, n, np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big"))))


def edge_probability(part: GraphPart, n: int) -> float:
    """Return it as given, else 2 ln n / n, at which the graph is connected with a probability near 1."""
    return min(1.0, 2.0 * math.log(n) / n) if part.probability is None else part.probability


def _erdos_renyi(part: GraphPart, n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    """Make each pair an edge with `probability` (default 2 ln n / n), by skipping over the pairs that are none."""
    probability = edge_probability(part, n)
    row_starts = np.concatenate(([0], np.cumsum(np.arange(n - 1, 0, -1))))
    pairs = n * (n - 1) // 2
    if probability >= 1:
        chosen = np.arange(pairs)
    elif probability <= 0:
        chosen = np.arange(0)
    else:
        chosen = _skips(probability, pairs, generator)
    u = np.searchsorted(row_starts, chosen, side="right") - 1
    return np.column_stack((u, chosen - row_starts[u] + u + 1)), None


def _skips(probability: float, pairs: int, generator: np.random.Generator) -> Any:
    """Choose numbers below `pairs`, each independently: the gaps between them are geometric."""
    blocks = []
    last = -1.0
    while last < pairs:
        uniform = generator.random(int(pairs * probability * 1.1) + 16)
        gaps = np.minimum(np.floor(np.log1p(-uniform) / math.log1p(-probability)), float(pairs)) + 1
        block = last + np.cumsum(gaps)
        blocks.append(block)
        last = float(block[-1])
    chosen = np.concatenate(blocks)
    return chosen[chosen < pairs].astype(np.int64)


def _geometric(part: GraphPart, n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    """Draw uniform points in the unit square, linked at distances up to `radius`.

    The default is sqrt(2 ln n / n), sqrt(2 pi) times the threshold sqrt(ln n / (pi n)) of
    connectivity: even in a corner a node is alone with a probability near n^(-pi/2) only.
    """
    radius = math.sqrt(2 * math.log(n) / n) if part.radius is None else part.radius
    positions = generator.random((n, 2))
    return close_pairs(positions, radius), positions


def close_pairs(positions: Any, radius: float) -> Any:
    """Return all pairs of points in the unit square that are no farther apart than `radius`, one row (u, v) each.

    Points are sorted into square cells whose sides are at least `radius`. The partners of a point lie in its own cell,
    behind it, in the next cell of the same row, or in three adjacent cells of the next row. A margin on either side of
    each row keeps rows apart.
    """
    n = len(positions)
    across = max(1, int(1.0 / max(radius, n**-0.5)))
    width = across + 2
    cells = np.minimum(positions * across, across - 1).astype(np.int64)
    places = cells[:, 0] * width + cells[:, 1] + 1
    order = np.argsort(places, kind="stable")
    placed, points = places[order], positions[order]
    found = []
    for first in range(0, n, _POINTS_AT_A_TIME):
        here = np.arange(first, min(n, first + _POINTS_AT_A_TIME))
        starts = np.concatenate((here + 1, placed.searchsorted(placed[here] + width - 1, "left")))
        ends = placed.searchsorted(np.concatenate((placed[here] + 1, placed[here] + width + 1)), "right")
        counts = ends - starts
        one = np.repeat(np.concatenate((here, here)), counts)
        other = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts - starts, counts)
        near = ((points[one] - points[other]) ** 2).sum(axis=1) <= radius**2
        found.append(np.column_stack((order[one[near]], order[other[near]])))
    return np.concatenate(found)


def _regular(part: GraphPart, n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    degree = part.degree
    if degree is None:
        raise UsageError('[graph] degree: missing; kind "regular" needs it.')
    if degree >= n:
        raise RunFailed(f"[graph] degree: no graph of {n} nodes has degree {degree}; it has to be below {n}.")
    if degree * n % 2:
        raise RunFailed(f"[graph] degree: no graph of {n} nodes has degree {degree}: their product has to be even.")
    sparse = min(degree, n - 1 - degree)
    codes = None
    while codes is None:
        codes = _paired(sparse, n, generator)
    chosen = np.array(sorted(codes), dtype=np.int64)
    if sparse != degree:
        every = np.arange(n * n)
        chosen = np.setdiff1d(every[every // n < every % n], chosen, assume_unique=True)
    return np.column_stack((chosen // n, chosen % n)), None


def _paired(degree: int, n: int, generator: np.random.Generator) -> set[int] | None:
    """Pair the free ends of all nodes at random, again and again; None when those left cannot be paired."""
    codes: set[int] = set()
    free = np.repeat(np.arange(n), degree)
    while free.size:
        shuffled = free[np.argsort(generator.random(free.size), kind="stable")]
        low, high = np.minimum(shuffled[::2], shuffled[1::2]), np.maximum(shuffled[::2], shuffled[1::2])
        left = []
        before = len(codes)
        for u, v in zip(low.tolist(), high.tolist(), strict=True):
            if u == v or u * n + v in codes:
                left += [u, v]
            else:
                codes.add(u * n + v)
        if len(codes) == before and not _pairable(left, codes, n):
            return None
        free = np.array(left, dtype=np.int64)
    return codes


def _pairable(free: list[int], codes: set[int], n: int) -> bool:
    nodes = sorted(set(free))
    return any(u * n + v not in codes for place, u in enumerate(nodes) for v in nodes[place + 1 :])


RANDOM_KINDS: Final[dict[str, Callable[[GraphPart, int, np.random.Generator], tuple[Any, Any]]]] = {
    "erdos_renyi": _erdos_renyi,
    "geometric": _geometric,
    "regular": _regular,
}
