"""The nodes of a run of gossip as layers, on which `privacy/linear/layers.py` can compute.

A node lies one layer above the highest that it is made of, users' y being layer 0; what a later layer needs is
carried on through those between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2pdp.privacy.linear.layers import Layer, Layers
from p2pdp.protocols.gossip.analysis.forms import Draw, Node, Weight

Place = tuple[int, int]  # layer, and which of its values


class Stack:
    """Nodes laid out; `place` says where one lies, `draws` the number of each fresh draw."""

    def __init__(self, users: int, nodes: Sequence[Node], deviation: float) -> None:
        self._users = users
        self._nodes = nodes
        depths: list[int] = []
        for node in nodes:
            depths.append(1 + max((depths[parent] for parent in node.nodes), default=0))
        self.draws: dict[Draw, int] = {}
        for node in nodes:
            for draw in node.draws:
                self.draws.setdefault(draw, len(self.draws))
        self._depths = depths
        self._columns = self._laid_out(depths)
        steps = [self._step(number) for number in range(1, len(self._columns))]
        self.layers = Layers(users, steps, len(self.draws), deviation)

    def place(self, node: int) -> Place:
        depth = self._depths[node]
        return depth, self._columns[depth][node]

    def _laid_out(self, depths: Sequence[int]) -> list[dict[int, int]]:
        """Of each layer, which column holds which node; users' y are numbered from -1 downwards."""
        last_use = list(depths)
        for node, depth in zip(self._nodes, depths, strict=True):
            for parent in node.nodes:
                last_use[parent] = max(last_use[parent], depth - 1)
        users_until = 0
        for node, depth in zip(self._nodes, depths, strict=True):
            users_until = max(users_until, depth - 1) if node.users else users_until
        found: list[dict[int, int]] = [{} for _ in range(1 + max(depths, default=0))]
        for number, columns in enumerate(found):
            if number <= users_until:
                columns.update({-1 - user: user for user in range(self._users)})
        for number, (depth, until) in enumerate(zip(depths, last_use, strict=True)):
            for columns in found[depth : until + 1]:
                columns[number] = len(columns)
        return found

    def _step(self, number: int) -> Layer:
        before, here = self._columns[number - 1], self._columns[number]
        entries: list[tuple[int, int, Weight]] = []
        fresh: list[tuple[int, int, Weight]] = []
        for key, row in here.items():
            if key < 0 or self._depths[key] < number:
                entries.append((row, before[key], (1.0, 1)))
                continue
            node = self._nodes[key]
            entries += [(row, before[parent], weight) for parent, weight in node.nodes.items()]
            entries += [(row, before[-1 - user], weight) for user, weight in node.users.items()]
            fresh += [(row, self.draws[draw], weight) for draw, weight in node.draws.items()]
        parents, residues = _sparse(entries, len(here), len(before))
        if not self.draws:
            return Layer(parents, residues)
        return Layer(parents, residues, *_sparse(fresh, len(here), len(self.draws)))


def _sparse(entries: Sequence[tuple[int, int, Weight]], rows: int, columns: int) -> tuple[Any, Any]:
    from scipy.sparse import csr_array

    ordered = sorted(entries)
    ends = np.searchsorted([row for row, _, _ in ordered], np.arange(rows + 1))
    places = np.array([column for _, column, _ in ordered], dtype=np.int64)
    values = np.array([weight for _, _, (weight, _) in ordered], dtype=np.float64)
    residues = np.array([rest for _, _, (_, rest) in ordered], dtype=np.int64)
    return csr_array((values, places, ends), shape=(rows, columns)), residues
