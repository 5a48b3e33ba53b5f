"""Linear forms of gossip, each a weighted sum of forms before it, as numbers, as a smaller graph, or in layers.

A machine of gossip makes some forms for each edge and round; only those that somebody received, or that are used
more than once and are sums of several others, are kept as `Node`s, the others are written out. Weights come with
their residues (`privacy/linear/modular.py`), so that ranks can be had exactly.

A user's input and its first draw go together everywhere, as y = input + noise; so does noise that it shares with
others, which the caller owes (`views.masks_hold`) and which is left out. Where they do not, or where a user's message
is not known, the node is `unknown`, and so is every node that depends on it.

A `Stack` lays the nodes of a run out in layers, on which `privacy/linear/layers.py` can compute. A node lies one layer
above the highest of its parents, users' y being layer 0; what a later layer needs is carried on through those between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from p2pdp.core.values import PAIR, LinearForm, Source, in_order
from p2pdp.privacy.linear.layers import Layer, Layers
from p2pdp.privacy.linear.modular import MODULUS, residue

Weight = tuple[float, int]  # a number, and its residue modulo all primes
Draw = tuple[int, int]  # a user, and the number of its draw

OWN_NOISE: Final = 0  # the number of the draw that goes with the input
_TERMS_WRITTEN_OUT: Final = 2
_ROUNDING: Final = 1e-9


@dataclass(slots=True)
class Node:
    """A weighted sum of nodes, of users' y, and of fresh draws."""

    nodes: dict[int, Weight] = field(default_factory=dict)
    users: dict[int, Weight] = field(default_factory=dict)
    draws: dict[Draw, Weight] = field(default_factory=dict)
    unknown: bool = False

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.users) + len(self.draws)


@dataclass(slots=True)
class _Sum(Node):
    noises: dict[int, Weight] = field(default_factory=dict)  # users' own noise, in steps of the grid

    def add(self, other: _Sum, weight: float) -> None:
        scale = (weight, residue(weight))
        self.unknown |= other.unknown
        for mine, theirs in (
            (self.nodes, other.nodes),
            (self.users, other.users),
            (self.draws, other.draws),
            (self.noises, other.noises),
        ):
            _add(mine, theirs, scale)  # type: ignore[arg-type]  # keys of both are of one kind

    def node(self, step: float, *, noised: bool) -> Node:
        users = {user: weight for user, weight in self.users.items() if weight[1] or weight[0]}
        unknown = self.unknown
        if noised:
            for user in self.users.keys() | self.noises.keys():
                one, other = self.users.get(user, (0.0, 0))[0], self.noises.get(user, (0.0, 0))[0] / step
                unknown |= not math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING * step)
        draws = {draw: (value / step, rest * _inverse(step) % MODULUS) for draw, (value, rest) in self.draws.items()}
        return Node(dict(self.nodes), users, draws, unknown)


def _inverse(step: float) -> int:
    return pow(residue(step), -1, MODULUS)


def _add(mine: dict[int, Weight], theirs: Mapping[int, Weight], scale: Weight) -> None:
    for key, (value, rest) in theirs.items():
        before = mine.get(key, (0.0, 0))
        mine[key] = (before[0] + value * scale[0], (before[1] + rest * scale[1]) % MODULUS)


def evaluated(
    forms: Sequence[LinearForm], ordered: Sequence[LinearForm], values: Mapping[Source, int]
) -> list[int | None]:
    """Return the values of forms modulo all primes; None for a form that depends on a source without a value.

    `ordered` has these forms and all their ancestors, each after its parents.
    """
    known: dict[int, int | None] = {}
    for form in ordered:
        total: int | None = 0
        for source, weight in form.terms:
            total = _plus(total, values.get(source), weight)
        if total is not None:
            for parent, weight in form.parents:  # of which there are millions: without a call for each
                value = known[id(parent)]
                if value is None:
                    total = None
                    break
                total += value if weight == 1.0 else value * residue(weight)
        known[id(form)] = None if total is None else total % MODULUS
    return [known[id(form)] for form in forms]


def _plus(total: int | None, value: int | None, weight: float) -> int | None:
    if total is None or value is None:
        return None
    return total + (value if weight == 1.0 else value * residue(weight))


def collapsed(forms: Sequence[LinearForm], step: float, *, noised: bool) -> tuple[list[Node], list[int]]:
    """Return nodes, parents first, and the node of each form. Draws are in units of their steps of the grid.

    `noised` says that each user's first draw is the noise of its input.
    """
    ordered = in_order(forms)
    uses = {id(form): 0 for form in ordered}
    for form in ordered:
        for parent, _ in form.parents:
            uses[id(parent)] += 1
    asked_for = {id(form) for form in forms}
    nodes: list[Node] = []
    places: dict[int, int] = {}
    sums: dict[int, _Sum] = {}
    for form in ordered:
        total = _terms(form, noised=noised)
        for parent, weight in form.parents:
            total.add(sums[id(parent)], weight)
            uses[id(parent)] -= 1
            if not uses[id(parent)]:
                del sums[id(parent)]
        several = uses[id(form)] > 1 and bool(total.nodes) and total.size > _TERMS_WRITTEN_OUT
        if id(form) in asked_for or several:
            places[id(form)] = len(nodes)
            nodes.append(total.node(step, noised=noised))
            sums[id(form)] = _Sum(nodes={len(nodes) - 1: (1.0, 1)}, unknown=nodes[-1].unknown)
        else:
            sums[id(form)] = total
    return nodes, [places[id(form)] for form in forms]


def _terms(form: LinearForm, *, noised: bool) -> _Sum:
    found = _Sum()
    for source, weight in form.terms:
        pair = (weight, residue(weight))
        if source.kind == "input" and source.number == 0:
            _add(found.users, {source.peer: pair}, (1.0, 1))
        elif source.kind == "draw" and noised and source.number == OWN_NOISE:
            _add(found.noises, {source.peer: pair}, (1.0, 1))
        elif source.kind == "draw":
            _add(found.draws, {(source.peer, source.number): pair}, (1.0, 1))  # type: ignore[arg-type,dict-item]
        elif source.kind != PAIR:
            found.unknown = True
    return found


Place = tuple[int, int]  # a layer, and the position in it


class Stack:
    """Nodes in layers; `place` returns the position of a node, `draws` the number of each fresh draw."""

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
        """Return the column of each node in each layer; users' y are numbered from -1 downwards."""
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
