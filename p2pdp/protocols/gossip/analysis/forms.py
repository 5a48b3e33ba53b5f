"""Linear forms of gossip, each a weighted sum of forms before it, as numbers or as a smaller graph of the same kind.

A machine of gossip makes some forms for each edge and round; only those that somebody received, or that are used
more than once and are sums of several others, are kept as `Node`s, the others are written out. Weights come with
their residues (`privacy/linear/modular.py`), so that ranks can be had exactly.

A user's input and its first draw go together everywhere, as y = input + noise. Where they do not, or where what a
user sent is not known, the node is `unknown`, and so is whatever depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from p2pdp.core.values import LinearForm, Source, in_order
from p2pdp.privacy.linear.modular import MODULUS, residue

Weight = tuple[float, int]  # a number, and its residue modulo all primes
Draw = tuple[int, int]  # whose, and which of its draws

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
    """What forms come to modulo all primes; None where they depend on a source that has no value.

    `ordered` has these forms and all that they are made of, each after its parents.
    """
    known: dict[int, int | None] = {}
    for form in ordered:
        total: int | None = 0
        for source, weight in form.terms:
            total = _plus(total, values.get(source), weight)
        for parent, weight in form.parents:
            total = _plus(total, known[id(parent)], weight)
        known[id(form)] = None if total is None else total % MODULUS
    return [known[id(form)] for form in forms]


def _plus(total: int | None, value: int | None, weight: float) -> int | None:
    if total is None or value is None:
        return None
    return total + (value if weight == 1.0 else value * residue(weight))


def collapsed(forms: Sequence[LinearForm], step: float, *, noised: bool) -> tuple[list[Node], list[int]]:
    """Nodes, parents first, and which of them each form is. Draws are in units of their steps of the grid.

    `noised` is whether each user's first draw is the noise of its input.
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
        else:
            found.unknown = True
    return found
