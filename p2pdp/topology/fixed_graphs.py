"""Edges of the graph kinds that leave nothing to chance, except the complete graph, which needs none.

Each kind gives an array with one row (u, v) for each edge; a row may be a loop or come twice where n
is small, and `topology.graphs` drops those. `RunFailed` says that the kind has no graph of n nodes.

The exponential graph is symmetric here, u linked to u + 2^k and u - 2^k modulo n, because gossip
matrices need undirected graphs; [YYC21], which [CEBM22] cites for it, directs its edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import RunFailed
from p2pdp.core.spec import GraphPart


def _ring(n: int) -> Any:
    nodes = np.arange(n)
    return np.column_stack((nodes, (nodes + 1) % n))


def _path(n: int) -> Any:
    return _ring(n)[:-1]


def _star(n: int) -> Any:
    """Node 0 is the centre."""
    nodes = np.arange(1, n)
    return np.column_stack((np.zeros_like(nodes), nodes))


def _hypercube(n: int) -> Any:
    if n & (n - 1):
        raise RunFailed(f"[graph] kind: there is no hypercube of {n} nodes, only of a power of two.")
    return _linked(n, [np.arange(n) ^ (1 << k) for k in range(n.bit_length() - 1)])


def _exponential(n: int) -> Any:
    return _linked(n, [(np.arange(n) + (1 << k)) % n for k in range((n - 1).bit_length())])


def _linked(n: int, others: list[Any]) -> Any:
    """Every node u linked to `other[u]`, for each array in the list."""
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *(np.column_stack((np.arange(n), o)) for o in others)])


def _lattice(part: GraphPart, n: int) -> Any:
    """A grid, or a torus, whose rows and columns close into rings; node r * columns + c lies at (r, c)."""
    rows, columns = _sides(part, n)
    places = np.arange(n).reshape(rows, columns)
    if part.kind == "torus":
        return _linked(n, [np.roll(places, -1, axis=axis).reshape(-1) for axis in (0, 1)])
    down = np.column_stack((places[:-1].reshape(-1), places[1:].reshape(-1)))
    right = np.column_stack((places[:, :-1].reshape(-1), places[:, 1:].reshape(-1)))
    return np.concatenate((down, right))


def _sides(part: GraphPart, n: int) -> tuple[int, int]:
    """Rows and columns: as given, else the divisors of n nearest to a square, fewer rows than columns."""
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
