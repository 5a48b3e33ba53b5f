"""Leaks of synchronous gossip on graphs that everybody knows: exact, and as [CEBM22, equation (6)] adds them up.

Both are in units of local privacy: 1 is what a user's own noised value tells. Weights are `metropolis`, as in the
authors' code, and runs are as long as Theorem 2 wants for sigma = Delta = 1, accelerated, which changes no leak. A user
hears its neighbours in each round. Exact leaks are those of `accounting/linear/krylov.py`, raised by what rounding may
have hidden: on graphs that mix slowly they are upper ends, which `proved_ranks` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.accounting.linear.krylov import Span, fixed_span
from p2pdp.accounting.linear.layers import View, fixed_layers, modular_ranks, raised
from p2pdp.accounting.linear.modular import PRIMES
from p2pdp.accounting.linear.published import theorem_1
from p2pdp.core.arrays import Floats
from p2pdp.experiments.contract import JSON, Line, Setting, unknown
from p2pdp.experiments.distances import distances_from
from p2pdp.topology.gossip_rounds import rounds_needed
from p2pdp.topology.graphs import Graph
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, sparse_weights

ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Gossip:
    """A graph with its weights and the number of rounds that make results precise."""

    graph: Graph
    weights: Any
    gap: float
    rounds: int


def gossip_on(graph: Graph, weights: str = METROPOLIS) -> Gossip:
    matrix = sparse_weights(graph, weights)
    gap = spectrum_ends(matrix).gap
    return Gossip(graph, matrix, gap, rounds_needed(gap, graph.n, 1.0, 1.0, 1, accelerated=True))


def spans(on: Gossip, observers: Sequence[int]) -> list[Span]:
    """What each observer learns of all users."""
    neighbours = on.graph.neighbours
    found = [fixed_span(on.weights, neighbours, [observer], on.rounds) for observer in observers]
    return [raised(span, span.rank) for span in found]


def proved_ranks(on: Gossip, observers: Sequence[int], of: Sequence[Span]) -> list[int]:
    """The ranks of these views modulo a prime: never above the truth, and below it by bad luck only.

    Where they are below those of `of`, floats took rounding for rows, and the leaks there are too high.
    """
    views = [_view(on, observer) for observer in observers]
    return modular_ranks(fixed_layers(on.weights, on.rounds), views, max(span.rank for span in of), PRIMES[0])


def printed_leaks(on: Gossip, observers: Sequence[int]) -> Floats:
    """Equation (6), of each user (row) for each observer (column); it may exceed 1."""
    return theorem_1(fixed_layers(on.weights, on.rounds), [_view(on, observer) for observer in observers])


def _view(on: Gossip, observer: int) -> View:
    return View(dict.fromkeys(range(on.rounds), on.graph.neighbours[observer]), [observer])


def by_distance(on: Gossip, observers: Sequence[int], exact: Floats, printed: Floats) -> dict[str, JSON]:
    """Least, mean and largest leak of all pairs at each distance, and how many pairs; columns are observers."""
    away = np.array([distances_from(on.graph, observer) for observer in observers]).T
    groups = range(1, int(away.max()) + 1)
    found: dict[str, JSON] = {"distances": list(groups), "pairs": [int(np.sum(away == k)) for k in groups]}
    for name, leaks in (("exact", exact), ("printed", printed)):
        for end, of in (("least", np.min), ("mean", np.mean), ("most", np.max)):
            found[f"{name}_{end}"] = [float(of(leaks[away == k])) for k in groups]
    others = away > 0
    found["exceeded"] = int(np.sum(others & (exact > printed * (1.0 + ROUNDING) + ROUNDING)))
    return found


def sized(setting: Setting, lines: list[Line]) -> list[Line]:
    """In the quick form, whose graphs are smaller than the paper's, nothing agrees or differs with what it says."""
    if not setting.quick:
        return lines
    small = "a smaller graph than the paper's"
    return [line if line.paper is None else unknown(line.what, line.ours, f"{small}; {line.why}") for line in lines]


def evenly(n: int, count: int) -> list[int]:
    """So many users, evenly spread over their numbers."""
    chosen: list[int] = np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64)).tolist()
    return chosen
