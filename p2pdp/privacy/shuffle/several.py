"""Epsilon of users whose randomized reports went through several shuffles: the gaps between an observer's visits.

A `Kind` is one report among `others` more and `dummies` uniform elements; what a user's reports tell is the sum of the
losses of its kinds, for gaps are independent given all truths, and the curve of `blanket.py` is that of a pair of
distributions, so it composes by convolution [ZDW22]. Of c reports in one gap the others are split
into c parts and each part is taken to be revealed by itself: whoever sees the parts sees the gap. No report tells more
than its own epsilon.

Losses are put on a grid by splitting each between its two neighbours so that both distributions keep their mass
("connect the dots" [DGKKM22]), an upper end. So that alike gaps share their work, `others` above 255
are rounded down to eight binary digits, and numbers of uniform elements to at most `_BLOCKS_MAX` values: fewer others
tell more. The lower end is that of others who all hold a third value (for two categories: all the same one), and of
gaps with one report of the user only; the rest it leaves out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Complexes, Floats
from p2pdp.mechanisms.rounding import inside
from p2pdp.privacy.pld import sums
from p2pdp.privacy.pld.losses import from_outcomes
from p2pdp.privacy.shuffle.blanket import (
    ROUNDING,
    Reports,
    lower_outcomes,
    two_valued_outcomes,
    upper_outcomes,
)

_STEP: Final = 0.05  # of the typical loss of one gap: upper ends are then less than a tenth of a percent high
_STEP_LOWER: Final = 0.01
_WINDOW: Final = 40.0  # typical losses of a whole sum, at least, that a window of the largest size can hold
_BLOCKS_MAX: Final = 160
_DIGITS: Final = 8
_CUT: Final = 1e-6  # of delta, in all gaps of a user together
_CUT_MIN: Final = 1e-60  # products of three such masses are still numbers
_ROWS_MAX: Final = 128
_UP: Final = 1.0 + 1e-9
_DELTA_MIN: Final = 1e-250  # below, every report counts in full, and in a lower end not at all


class Kind(NamedTuple):
    """One report of the user among `others` more and `dummies` uniform elements."""

    others: int
    dummies: int


def kinds_of(reports: int, others: int, dummies: int) -> Counter[Kind]:
    """Return the kinds of a gap with so many reports of the user."""
    more_others, more_dummies = others % reports, reports - dummies % reports
    return Counter(
        Kind(others // reports + (part < more_others), dummies // reports + (part >= more_dummies))
        for part in range(reports)
    )


def upper_epsilons(epsilon_0: float, categories: int, users: Sequence[Mapping[Kind, int]], delta: float) -> Floats:
    """Return an upper end for each user, from how often it has which kind; it holds for any data of the others."""
    inside("delta", delta)
    if delta < _DELTA_MIN:
        return np.array([epsilon_0 * sum(kinds.values()) * _UP for kinds in users])
    found = np.zeros(len(users))
    alike: dict[frozenset[tuple[Kind, int]], list[int]] = {}
    for place, kinds in enumerate(map(_coarse, users)):
        if kinds:
            alike.setdefault(frozenset(kinds.items()), []).append(place)
    if alike:
        curves = _Curves(epsilon_0, categories, list(map(dict, alike)), delta)
        for epsilon, places in zip(curves.epsilons(), alike.values(), strict=True):
            found[places] = epsilon
    return found


def lower_epsilon(epsilon_0: float, categories: int, kinds: Mapping[Kind, int], delta: float) -> float:
    """Return a lower end for one user, from how often it has which kind with one report."""
    if not kinds or delta < _DELTA_MIN:
        return 0.0
    scales = [(_scale(epsilon_0, categories, kind), count) for kind, count in kinds.items()]
    step = _STEP_LOWER * math.sqrt(sum(scale**2 * count for scale, count in scales) / sum(kinds.values()))
    cut = max(_CUT * delta / (sum(kinds.values()) * categories), _CUT_MIN)
    parts = []
    for kind, count in kinds.items():
        reports = Reports.of(epsilon_0, categories, *kind)
        if categories > 2:
            outcomes = lower_outcomes(reports, cut)
            losses = from_outcomes(step, outcomes, outcomes)
        else:
            outcomes = two_valued_outcomes(reports, reports.others, cut)
            against = two_valued_outcomes(reports, 0, cut)
            losses = from_outcomes(step, outcomes, against)
        parts.append((replace(losses, slack=losses.slack + outcomes.lost + 8.0 * cut), count))
    off = 2.0 * ROUNDING * sum(kinds.values())
    return max(0.0, sums.compose(parts, delta * (1.0 + off)).epsilon_lower(delta * (1.0 + off)) / _UP - off)


def _coarse(kinds: Mapping[Kind, int]) -> Counter[Kind]:
    found: Counter[Kind] = Counter()
    for kind, count in kinds.items():
        shift = max(0, kind.others.bit_length() - _DIGITS)
        found[Kind(kind.others >> shift << shift, kind.dummies)] += count
    return found


def _scale(epsilon_0: float, categories: int, kind: Kind) -> float:
    """Return roughly the standard deviation of a loss: that of (1 - gamma) L (a - b) / M."""
    reports = Reports.of(epsilon_0, categories, *kind)
    elements = 1.0 + kind.dummies + kind.others * reports.gamma
    return min(epsilon_0, reports.kept * math.sqrt(2.0 * categories / elements))


class _Curves:
    """Users in chunks, each a sum of logarithms of spectra (`privacy/pld/sums.py`)."""

    def __init__(self, epsilon_0: float, categories: int, users: list[dict[Kind, int]], delta: float) -> None:
        self._epsilon_0, self._users = epsilon_0, users
        self._counts = [sum(kinds.values()) for kinds in users]
        self._off = 2.0 * ROUNDING * max(self._counts)  # relative, of all masses together
        self._delta = delta * (1.0 - self._off)
        scales = {kind: _scale(epsilon_0, categories, kind) for kind in {kind for kinds in users for kind in kinds}}
        squares = [sum(scales[kind] ** 2 * count for kind, count in kinds.items()) for kinds in users]
        most = math.sqrt(max(squares))
        typical = math.sqrt(sum(squares) / sum(self._counts))
        self._step = max(_STEP * typical, _WINDOW * most * (1.0 + most) / sums.SIZE_MAX)
        self._moments = sums.Moments(math.sqrt(min(squares)), most)
        cut = max(_CUT * delta / (max(self._counts) * categories), _CUT_MIN)
        self._losses = {}
        for kind in scales:
            outcomes = upper_outcomes(Reports.of(epsilon_0, categories, *kind), cut, _BLOCKS_MAX)
            self._losses[kind] = replace(from_outcomes(self._step, outcomes, outcomes), infinite=outcomes.lost)
        self._log_moments = {kind: one.log_moments(self._moments.exponents) for kind, one in self._losses.items()}

    def epsilons(self) -> Floats:
        found = np.empty(len(self._users))
        moments = np.array([self._sum(self._log_moments, kinds) for kinds in self._users])
        sizes = self._moments.size(moments, self._delta, self._step)
        for size in np.unique(sizes):
            rows = np.nonzero(sizes == size)[0]
            spectra = {kind: sums.log_spectrum(one, int(size)) for kind, one in self._losses.items()}
            for start in range(0, len(rows), _ROWS_MAX):
                chunk = rows[start : start + _ROWS_MAX]
                found[chunk] = self._chunk(chunk.tolist(), spectra, moments[chunk])
        return found

    def _chunk(self, rows: list[int], spectra: Mapping[Kind, Complexes], moments: Floats) -> Floats:
        users = [self._users[row] for row in rows]
        used = sorted({kind for kinds in users for kind in kinds})
        counts = np.array([[float(kinds.get(kind, 0)) for kind in used] for kinds in users])
        logs = (counts @ np.stack([spectra[kind] for kind in used]).view(np.float64)).view(np.complex128)
        beyond = counts @ np.array([self._losses[kind].infinite for kind in used])
        most = counts.sum(axis=1)
        upper = self._moments.upper(np.exp(logs), moments, self._step, self._delta, beyond, int(most.max())).epsilons
        found: Floats = np.minimum(upper + self._off, most * self._epsilon_0 * _UP)
        return found

    @staticmethod
    def _sum(of: Mapping[Kind, Floats], kinds: Mapping[Kind, int]) -> Floats:
        return np.asarray(sum(of[kind] * float(count) for kind, count in kinds.items()))
