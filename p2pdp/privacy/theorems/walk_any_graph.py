"""Learning by a walk on any graph, as published [CBU24].

The Rényi divergence of u for v is alpha T ln T / (sigma^2 n^2) + alpha T / (sigma^2 n) [-ln(I - W + 11'/n)]_uv for
sensitivity 1 and symmetric W, here of metropolis weights like in the authors' code. No bound: like the account of
the complete graph it misses repeated visits of u before v looks. Entries below 0, which are no divergences, count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.privacy.contract import Accountant, Answer, choice, number, whole
from p2pdp.topology.graphs import Graph, make_graph
from p2pdp.topology.kinds import FIXED_KINDS, RANDOM_KINDS
from p2pdp.topology.spectra import log_resolvent
from p2pdp.topology.weights import METROPOLIS, sparse_weights

GRAPH: Final = choice("graph", "kind of the graph", ("complete", *FIXED_KINDS, *RANDOM_KINDS))
DEGREE: Final = whole("degree", "degree of each node; regular graphs need it", 1, 1999, optional=True)
SEED: Final = whole("seed", "of random graphs", 0, (1 << 63) - 1, default=0)


ASSUMPTIONS: Final = ("as printed: its proof misses repeated visits of a user before the observer looks",)
SOURCE: Final = "Cyffers, Bellet and Upadhyay 2024"


def per_order(graph: Graph, n: int, hops: int) -> Floats:
    """Return the divergence of each pair over its order, for sigma = 1 and sensitivity 1."""
    entries = log_resolvent(sparse_weights(graph, METROPOLIS))
    losses = np.maximum(0.0, hops / n * (math.log(hops) / n + entries))
    np.fill_diagonal(losses, 0.0)
    return np.asarray(losses)


def graph_of(inputs: Mapping[str, Any]) -> Graph:
    """Return the graph that the inputs graph, n, degree and seed describe."""
    degree = inputs["degree"]
    try:
        graph = make_graph(GraphPart(inputs["graph"], degree=degree), inputs["n"], inputs["seed"])
    except RunFailed as error:
        raise UsageError(str(error)) from None
    if degree is not None and any(graph.degree(u) != degree for u in range(graph.n)):
        raise UsageError(f"degree: not every node of this graph has degree {degree}")
    return graph


def _answer(inputs: Mapping[str, Any]) -> Answer:
    n, hops = inputs["n"], inputs["hops"]
    losses = inputs["alpha"] / inputs["sigma"] ** 2 * per_order(graph_of(inputs), n, hops)
    outputs = {
        "epsilon": float(losses.max()),
        "epsilon_mean": float(losses.sum() / (n * (n - 1))),
        "epsilon_local": inputs["alpha"] * hops / (2.0 * inputs["sigma"] ** 2 * n),
    }
    assumptions = (
        *ASSUMPTIONS,
        "epsilon is the Rényi divergence of order alpha, the largest over all pairs, and sensitivity is 1",
        "epsilon_local: each user contributes hops / n times",
    )
    return Answer(outputs, False, assumptions, SOURCE)


ACCOUNTANT: Final = Accountant(
    "the published theorem on learning by a walk on any graph, largest and mean over pairs",
    (
        GRAPH,
        whole("n", "users", 2, 2000),
        DEGREE,
        whole("hops", "steps in all, T", 1, 1_000_000_000_000),
        number("alpha", "order of the Rényi divergence", 1.0, 1e6, is_open=True),
        number("sigma", "standard deviation of the noise of one step, for sensitivity 1", 1e-6, 1e6),
        SEED,
    ),
    _answer,
)
