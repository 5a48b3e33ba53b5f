"""Layers of messages that gossip sends."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from p2pdp.privacy.linear.layers import Layer, Layers, View
from p2pdp.privacy.linear.modular import residue
from p2pdp.topology.graphs import Graph
from p2pdp.topology.weights import sparse_weights


def layer(matrix: Any, noise: Any = None) -> Layer:
    sparse = csr_array(np.asarray(matrix, dtype=float))
    residues = np.array([residue(float(value)) for value in sparse.data], dtype=np.int64)
    if noise is None:
        return Layer(sparse, residues)
    fresh = csr_array(np.asarray(noise, dtype=float))
    return Layer(sparse, residues, fresh, np.array([residue(float(value)) for value in fresh.data], dtype=np.int64))


def repaired(of: Graph, rounds: int, sigma_m: float) -> tuple[Layers, list[View], Any]:
    """Layers of rounds in which every directed edge has noise of its own: messages, then states."""
    weights = sparse_weights(of, "metropolis").toarray()
    edges = [(u, w) for u, row in enumerate(of.neighbours) for w in row]
    n, count = of.n, len(edges)
    noises = count * rounds
    steps, seen = [], {user: dict[int, list[int]]() for user in range(n)}
    for at in range(rounds):
        send = np.zeros((n + count, n))
        send[:n] = np.eye(n)
        fresh = np.zeros((n + count, noises))
        for place, (u, w) in enumerate(edges):
            send[n + place, u] = 1.0
            fresh[n + place, at * count + place] = 1.0
            seen[w].setdefault(2 * at + 1, []).append(n + place)
        take = np.zeros((n, n + count))
        take[:, :n] = np.eye(n)
        for place, (u, w) in enumerate(edges):
            take[w, n + place] += weights[w, u]
            take[w, w] -= weights[w, u]  # its own state stays clean
        steps += [layer(send, fresh), layer(take, np.zeros((n, noises)))]
    mine = [
        [at * count + place for at in range(rounds) for place, (u, _) in enumerate(edges) if u == v] for v in range(n)
    ]
    return Layers(n, steps, noises, sigma_m), [View(seen[v], [v], mine[v]) for v in range(n)], weights
