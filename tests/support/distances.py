"""Distances in a graph."""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.experiments.gossip_leaks import distances_from
from p2pdp.topology.graphs import Graph


def all_distances(graph: Graph) -> Ints:
    """How many edges lie between all pairs."""
    return np.array([distances_from(graph, node) for node in range(graph.n)], dtype=np.int64)
