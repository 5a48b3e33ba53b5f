"""Graphs and dense oracles for accountants of gossip, by plain matrix powers and pseudo-inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.privacy.linear.layers import View
from p2pdp.topology.graphs import Graph, make_graph


def graph(kind: str, n: int, seed: int = 1, **terms: Any) -> Graph:
    return make_graph(GraphPart(kind, **terms), n, seed)


def grid(rows: int, columns: int) -> Graph:
    return graph("grid", rows * columns, rows=rows, columns=columns)


def view(of: Graph, members: list[int], rounds: int) -> View:
    """Of the layers of fixed weights."""
    heard = sorted({near for member in members for near in of.neighbours[member]})
    return View(dict.fromkeys(range(rounds), heard), members)


def dense_leaks(rows: Any, members: list[int]) -> Any:
    """Squared projections of unit vectors on the span of rows and of the members' own; for few rounds only."""
    every = np.concatenate([np.asarray(rows), np.eye(np.shape(rows)[1])[members]])
    return np.diag(np.linalg.pinv(every, rcond=1e-10) @ every)


def powers(weights: Any, of: Graph, observer: int, rounds: int) -> Any:
    """The rows (W^t)_w that an observer heard."""
    dense = weights.toarray()
    return np.array(
        [np.linalg.matrix_power(dense, at)[near] for at in range(rounds) for near in of.neighbours[observer]]
    )
