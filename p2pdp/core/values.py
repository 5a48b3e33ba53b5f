"""Linear forms: the value type with which the auditor replays a run.

A live machine adds integers or arrays; the same machine, given linear forms, adds symbols
and so tells for each message exactly which inputs and draws it contains. Forms share
structure: a token is its predecessor plus two terms, so a walk of T steps costs O(T) memory,
and the difference of two visits is a stretch of that chain.

Comparing, branching on or converting a form raises: protocol arithmetic must be linear.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter
from typing import Any, Final, NamedTuple, NoReturn

NOBODY: Final = -3
PAIR: Final = "pair"


class Source(NamedTuple):
    """The origin of a value: `input` (a user's k-th value), `draw` (a peer's k-th draw) or `pair`.

    A `pair` is the k-th draw that two users share: `peer` is the lower of their numbers and `other` the higher.
    """

    kind: str
    peer: int
    number: int
    other: int = NOBODY


def pair_source(user: int, peer: int, number: int) -> Source:
    """Return the source of a draw that two users share; it is the same for both."""
    return Source(PAIR, min(user, peer), number, max(user, peer))


class Share(NamedTuple):
    """One part of a secret draw, which a message carries in a replay.

    Whoever has `threshold` parts of different `place` knows the draw; fewer parts tell nothing.
    """

    source: Source
    place: int = 0
    threshold: int = 1


GRADIENT: Final = "gradient"  # a contribution that depends on a model: the k-th of a user

_INLINE_TERMS_MAX: Final = 8


class LinearForm:
    """A weighted sum of parent forms and sources; never changed once made."""

    __slots__ = ("depth", "parents", "terms")
    __array_ufunc__ = None  # numpy would otherwise wrap forms into arrays of objects, element by element

    def __init__(
        self,
        parents: tuple[tuple[LinearForm, float], ...] = (),
        terms: tuple[tuple[Source, float], ...] = (),
    ) -> None:
        self.parents = parents
        self.terms = terms
        depth = 0
        for parent, _ in parents:
            depth = max(depth, parent.depth)
        self.depth: int = depth + 1

    @staticmethod
    def of(source: Source) -> LinearForm:
        return LinearForm((), ((source, 1.0),))

    def __add__(self, other: object) -> LinearForm:
        if isinstance(other, LinearForm):
            if not other.parents and len(other.terms) <= _INLINE_TERMS_MAX:
                return LinearForm(((self, 1.0),), other.terms)
            if not self.parents and len(self.terms) <= _INLINE_TERMS_MAX:
                return LinearForm(((other, 1.0),), self.terms)
            return LinearForm(((self, 1.0), (other, 1.0)))
        if isinstance(other, int) and other == 0:  # what sum() starts from
            return self
        return NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: object) -> LinearForm:
        if isinstance(factor, int | float):
            if not self.parents:
                return LinearForm((), tuple((source, coefficient * factor) for source, coefficient in self.terms))
            return LinearForm(((self, float(factor)),))
        return NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> LinearForm:
        return self * -1.0

    def __sub__(self, other: object) -> LinearForm:
        if isinstance(other, LinearForm):
            return self + -other
        return NotImplemented

    def __truediv__(self, divisor: object) -> LinearForm:
        if isinstance(divisor, int | float):
            return self * (1.0 / divisor)
        return NotImplemented

    def expand(self) -> dict[Source, float]:
        """Return all sources with their weights, without sources whose weights cancel."""
        return expand(((self, 1.0),))

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a linear form cannot be compared, branched on or converted: protocol arithmetic is linear")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __len__ = __array__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LinearForm(depth={self.depth})"


ZERO_FORM: Final = LinearForm()


def in_order(forms: Iterable[LinearForm]) -> list[LinearForm]:
    """Return all forms that these are made of, each once and after its parents."""
    found: dict[int, LinearForm] = {}
    pending = list(forms)
    while pending:
        form = pending.pop()
        if id(form) not in found:
            found[id(form)] = form
            for parent, _ in form.parents:
                pending.append(parent)
    return sorted(found.values(), key=attrgetter("depth"))


def snapped(value: Any, step: float) -> Any:
    """Move a float, or an array of them, to the nearest whole multiple of the step; leave a form as it is.

    For what is going to be noised on a grid: whatever lies between the steps would be seen beside the noise.
    """
    if isinstance(value, LinearForm):
        return value
    steps = value / step
    steps = round(steps) if type(steps) is float else steps.round()
    steps *= step  # in place where it is an array: this one is nobody else's
    return steps


def expand(weighted: Iterable[tuple[LinearForm, float]]) -> dict[Source, float]:
    """Return all sources with their weights, without sources whose weights cancel.

    Forms of one depth come in the order in which they were met: the last bits of sums do not depend on addresses.
    """
    weights: dict[int, float] = {}
    queue: list[tuple[int, int, LinearForm]] = []
    totals: dict[Source, float] = {}
    numbers = count()

    def add(form: LinearForm, weight: float) -> None:
        if id(form) in weights:
            weights[id(form)] += weight
        else:
            weights[id(form)] = weight
            heappush(queue, (-form.depth, next(numbers), form))

    for form, weight in weighted:
        add(form, weight)
    while queue:
        _, _, form = heappop(queue)
        weight = weights.pop(id(form))
        if weight != 0.0:
            for source, coefficient in form.terms:
                totals[source] = totals.get(source, 0.0) + weight * coefficient
            for parent, coefficient in form.parents:
                add(parent, weight * coefficient)
    return {source: weight for source, weight in totals.items() if weight != 0.0}
