"""Computes epsilons of many sums of gaps that share most of their gaps.

A `Part` is a gap as one user is in it, or several gaps that are alike in this. A sum is given by how often it has
each part: a base that many sums share, and what each adds to it or takes from it. Every answer is a pair of
ends: the upper end of the sum's curve, and the larger of the lower ends of both directions. Lower ends cost more than
upper ones; without `lower` they are left out, NaN.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Complexes, Each, Floats, one_by_one
from p2pdp.privacy.hidden_path.losses import lower_losses, scale, upper_losses_of
from p2pdp.privacy.pld.losses import Losses, log_moments_of
from p2pdp.privacy.pld.sums import (
    SIZE_MAX,
    Moments,
    log_spectrum,
)

_STEP: Final = 0.1  # of the typical loss of one gap: upper ends are then some tenths of a percent high
_STEP_MIN: Final = 1e-9
_STEP_MAX: Final = 16.0
_CUT_UPPER: Final = 1e-5  # of delta, in all gaps of a sum together
_CUT_LOWER: Final = 1e-4
_KEPT_MAX: Final = 3 << 22  # numbers of spectra that are kept


@dataclass(frozen=True, slots=True)
class Part:
    """`law` of the user's contributions in a gap; `mu_upper` and `mu_lower` are one contribution's in that gap.

    `share` says how well the upper end may count on their being hidden (`losses.py`); 1: not at all.
    """

    law: Floats
    mu_upper: float
    mu_lower: float
    share: float

    @property
    def scale(self) -> float:
        return scale(self.law, self.mu_upper, self.share)


class Ends(NamedTuple):
    """Upper and lower ends of epsilon, and upper ends of the total variation, which is delta at epsilon 0."""

    upper: Floats
    lower: Floats
    variation: Floats


def law_cut(delta: float, most: int) -> float:
    """Return how much of a law may be left out at its end, if a sum has at most so many parts."""
    return max(delta * _CUT_UPPER / max(most, 1), 1e-300)


class Curves:
    """`occurs` says how often each part occurs in all, `least` and `most` how large the sums are to be expected."""

    def __init__(
        self,
        parts: Sequence[Part],
        occurs: Floats,
        least: float,
        most: float,
        delta: float,
        *,
        lower: bool = True,
        once: Collection[int] = (),
        each: Each = one_by_one,
    ) -> None:
        """Spectra of parts in `once`, which are asked for by one call only, are not kept after it."""
        self._parts = parts
        self._delta = delta
        self._signs = (1.0, -1.0, -1.0)[: 3 if lower else 1]
        squares = np.array([part.scale**2 for part in parts])
        telling = squares > 0.0
        mean = float(squares @ occurs / max(float(telling @ occurs), 1.0))
        smallest, largest = max(mean * least, 1e-300), max(mean * most, 1e-300, float(squares.max(initial=0.0)))
        window = 3.0 * (largest / 2 + 8.0 * math.sqrt(largest))
        self._step = min(max(_STEP * math.sqrt(mean), window / SIZE_MAX, _STEP_MIN), _STEP_MAX)
        self._moments = Moments(math.sqrt(smallest), math.sqrt(largest))
        self._cuts = (delta * _CUT_UPPER / max(most, 1.0), delta * _CUT_LOWER / max(most, 1.0))
        self._losses = self._told(each)
        moments = [
            log_moments_of([losses[way] for losses in self._losses], sign * self._moments.exponents)
            for way, sign in enumerate(self._signs)
        ]
        self._log_moments = np.stack(moments, axis=1)
        lost = [[ends[0].infinite, *(one.slack for one in ends[1:])] for ends in self._losses]
        self._beyond = np.array(lost).reshape(len(parts), -1)
        self.once = frozenset(once)
        self._spectra: OrderedDict[tuple[int, int], Complexes] = OrderedDict()  # those used last at the end
        self._kept = 0  # numbers of these spectra

    def _told(self, each: Each) -> list[tuple[Losses, ...]]:
        """Return the losses of each part; those of parts with one mu are computed together."""
        alike: dict[float, list[int]] = {}
        for place, part in enumerate(self._parts):
            alike.setdefault(part.mu_upper, []).append(place)
        groups = list(alike.values())
        rows = each(len(groups), lambda number: self._losses_of([self._parts[place] for place in groups[number]]))
        found: list[tuple[Losses, ...]] = [()] * len(self._parts)
        for places, row in zip(groups, rows, strict=True):
            losses, ways = _unpacked(row, self._step), len(self._signs)
            for number, place in enumerate(places):
                found[place] = losses[number * ways : (number + 1) * ways]
        return found

    def _losses_of(self, parts: Sequence[Part]) -> Floats:
        """Return the losses of parts with one mu, one after the other."""
        upper, lower = (max(cut, 1e-300) for cut in self._cuts)
        found = upper_losses_of(
            [part.law for part in parts], parts[0].mu_upper, self._step, upper, [part.share for part in parts]
        )
        packed: list[Floats] = []
        for part, losses in zip(parts, found, strict=True):
            packed.append(_packed(losses))
            if len(self._signs) > 1:
                packed += map(_packed, lower_losses(part.law, part.mu_lower, self._step, lower))
        return np.concatenate(packed)

    def epsilons(self, common: Mapping[int, int], changes: Sequence[Iterable[tuple[int, int]]]) -> Ends:
        """Return the ends of sums with the counts of parts in `common`, adjusted by each of `changes`."""
        moments = _totals(self._log_moments, common, changes)
        beyond = _totals(self._beyond, common, changes)
        sizes = self._moments.size(moments[:, 0], self._delta, self._step)
        found = Ends(np.zeros(len(sizes)), np.full(len(sizes), np.nan), np.zeros(len(sizes)))
        for size in np.unique(sizes):
            rows = np.nonzero(sizes == size)[0]
            spectra = _totals(_Lookup(self, int(size)), common, [changes[int(row)] for row in rows])
            np.exp(spectra, out=spectra)
            count = sum(common.values()) + 1
            of = [
                (spectra[:, way], moments[rows, way], self._step, self._delta, beyond[rows, way], count)
                for way in range(len(self._signs))
            ]
            found.upper[rows], found.variation[rows] = self._moments.upper(*of[0])
            if len(of) > 1:
                found.lower[rows] = np.maximum(*(self._moments.lower(*one) for one in of[1:]))
        return found

    def spectrum(self, part: int, size: int) -> Complexes:
        """Return the logarithms of the spectra of a part's losses."""
        if (part, size) in self._spectra:
            self._spectra.move_to_end((part, size))
            return self._spectra[part, size]
        while self._kept > _KEPT_MAX:
            self._kept -= self._spectra.popitem(last=False)[1].size
        found = self._spectra[part, size] = self.new_spectrum(part, size)
        self._kept += found.size
        return found

    def new_spectrum(self, part: int, size: int) -> Complexes:
        return np.stack([log_spectrum(one, size) for one in self._losses[part]])


_FACTS: Final = 5  # of losses, before their masses


def _packed(losses: Losses) -> Floats:
    facts = len(losses.masses), losses.first, losses.infinite, losses.vanished, losses.slack
    return np.concatenate([facts, losses.masses])


def _unpacked(row: Floats, step: float) -> tuple[Losses, ...]:
    """Return the losses on this grid that lie in a row one after the other."""
    found: list[Losses] = []
    while len(row):
        size, first, infinite, vanished, slack = row[:_FACTS].tolist()
        end = _FACTS + int(size)
        found.append(Losses(step, int(first), row[_FACTS:end], infinite, vanished, slack))
        row = row[end:]
    return tuple(found)


class _Lookup:
    """Spectra of one size by part, as a table has rows, for one call."""

    def __init__(self, curves: Curves, size: int) -> None:
        self._curves, self._size = curves, size
        self._once: dict[int, Complexes] = {}

    def __getitem__(self, part: int) -> Complexes:
        if part not in self._curves.once:
            return self._curves.spectrum(part, self._size)
        if part not in self._once:
            self._once[part] = self._curves.new_spectrum(part, self._size)
        return self._once[part]


def _totals(table: Any, common: Mapping[int, int], changes: Sequence[Iterable[tuple[int, int]]]) -> Any:
    """Return, for each of `changes`, the sum of rows of the table."""
    base = table[0] * 0.0
    for part, count in common.items():
        _add(base, table[part], count)
    summed = np.repeat(base[None], len(changes), axis=0)
    for row, change in enumerate(changes):
        for part, count in change:
            _add(summed[row], table[part], count)
    return summed


def _add(total: Any, row: Any, count: int) -> None:
    """Add so many times this row, where once more or less is the usual case."""
    if count == 1:
        total += row
    elif count == -1:
        total -= row
    else:
        total += count * row
