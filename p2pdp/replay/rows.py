"""Linear forms as flat arrays, and the rows of an observer's view.

Forms of one token share a chain: each is the one before it plus a few terms. A chain is laid out as one array of terms,
and a form on it is a prefix of that array. What an observer learns from its visits is then the *stretches* between
them, which are sparse and disjoint, so that differences cost nothing. Forms that are sums of several chains (the
published total of several tokens) are weighted sums of prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.values import LinearForm, Source

Prefix = tuple[int, int]  # chain, number of its first terms

_PREFIXES_MAX: Final = 1 << 20  # that forms are sums of, beyond one each


class TooLarge(Exception):
    """Writing these forms out takes more memory than an audit should."""


@dataclass(slots=True)
class _Chain:
    sources: list[Source] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChainArrays:
    """The terms of one chain, in order."""

    sources: list[Source]
    weights: Floats


class Layout:
    """Places forms on chains. All forms must be placed before the first call of `chain`."""

    def __init__(self) -> None:
        self._chains: list[_Chain] = []
        self._places: dict[int, dict[Prefix, float]] = {}
        self._kept: list[LinearForm] = []  # so that no id is used again
        self._arrays: dict[int, ChainArrays] = {}
        self._prefixes = 0  # beyond one a form

    @property
    def chains(self) -> int:
        return len(self._chains)

    def chain(self, number: int) -> ChainArrays:
        if number not in self._arrays:
            chain = self._chains[number]
            self._arrays[number] = ChainArrays(chain.sources, np.array(chain.weights, dtype=np.float64))
        return self._arrays[number]

    def place(self, form: LinearForm) -> dict[Prefix, float]:
        """Return the form as a weighted sum of prefixes; raise `TooLarge` if all forms together have too many."""
        pending = [form]
        while pending:
            top = pending[-1]
            if id(top) in self._places:
                pending.pop()
                continue
            unknown = [parent for parent, _ in top.parents if id(parent) not in self._places]
            if unknown:
                pending += unknown
                continue
            pending.pop()
            self._kept.append(top)
            placed = self._places[id(top)] = self._placed(top)
            self._prefixes += max(0, len(placed) - 1)
            if self._prefixes > _PREFIXES_MAX:
                raise TooLarge
        return self._places[id(form)]

    def _placed(self, form: LinearForm) -> dict[Prefix, float]:
        combined: dict[Prefix, float] = {}
        for parent, weight in form.parents:
            for prefix, amount in self._places[id(parent)].items():
                combined[prefix] = combined.get(prefix, 0.0) + weight * amount
        if not form.terms:
            return combined
        if len(combined) == 1 and 1.0 in combined.values():
            (number, length), *_ = combined
            return {self._extended(number, length, form): 1.0}
        combined[self._extended(*self._new_chain(()), form)] = 1.0
        return combined

    def _extended(self, number: int, length: int, form: LinearForm) -> Prefix:
        """Return the prefix followed by the form's terms; a chain that already continues differently is copied."""
        chain = self._chains[number]
        if len(chain.sources) != length:
            number, length = self._new_chain(zip(chain.sources[:length], chain.weights[:length], strict=True))
            chain = self._chains[number]
        for source, weight in form.terms:
            chain.sources.append(source)
            chain.weights.append(weight)
        return number, len(chain.sources)

    def _new_chain(self, terms: Iterable[tuple[Source, float]]) -> Prefix:
        chain = _Chain()
        for source, weight in terms:
            chain.sources.append(source)
            chain.weights.append(weight)
        self._chains.append(chain)
        return len(self._chains) - 1, len(chain.sources)


@dataclass(frozen=True, slots=True)
class RowTerms:
    """The terms of an observer's rows: the row, its place on a chain, and its weight there."""

    rows: int
    row: Ints
    chain: Ints
    place: Ints
    weight: Floats


def stretches(placed: Iterable[dict[Prefix, float]]) -> RowTerms:
    """Return an observer's rows, reduced to disjoint stretches of chains wherever its forms are plain prefixes.

    Any set of rows spans the same space as its reduced form, so nothing is lost or added.
    """
    ends: dict[int, set[int]] = {}
    mixed: list[dict[Prefix, float]] = []
    for form in placed:
        plain = len(form) == 1 and next(iter(form.values())) == 1.0
        if plain:
            chain, end = next(iter(form))
            ends.setdefault(chain, set()).add(end)
        elif form:
            mixed.append(form)
    parts: list[tuple[int, int, int, int, float]] = []  # row, chain, begin, end, weight
    row = 0
    for chain in sorted(ends):
        begin = 0
        for end in sorted(ends[chain]):
            if end > begin:
                parts.append((row, chain, begin, end, 1.0))
                row += 1
                begin = end
    for form in mixed:
        rest = list(_rests(form, ends))
        parts += [(row, *part) for part in rest]
        row += bool(rest)
    return _terms(row, parts)


def _rests(form: dict[Prefix, float], ends: dict[int, set[int]]) -> Iterable[tuple[int, int, int, float]]:
    """Yield what a weighted sum of prefixes has beyond the prefixes that are known anyway."""
    for (chain, end), weight in sorted(form.items()):
        known = max((at for at in ends.get(chain, ()) if at <= end), default=0)
        if weight != 0.0 and known < end:
            yield chain, known, end, weight


def _terms(rows: int, parts: list[tuple[int, int, int, int, float]]) -> RowTerms:
    lengths = [end - begin for _, _, begin, end, _ in parts]

    def spread(values: list[Any], kind: type) -> Any:
        return np.repeat(np.array(values, dtype=kind), lengths)

    places = [np.arange(begin, end, dtype=np.int64) for _, _, begin, end, _ in parts]
    return RowTerms(
        rows,
        spread([part[0] for part in parts], np.int64),
        spread([part[1] for part in parts], np.int64),
        np.concatenate(places) if places else np.zeros(0, dtype=np.int64),
        spread([part[4] for part in parts], np.float64),
    )
