"""The law of what descent by a random walk on the complete graph exposes of a user, over all paths of the token.

Guarantee: `exposure_law` gives a law that is stochastically at least that of s in `path.exposures`, for rates that stay
the same. What an observer of its own visits and of the end learns of the user is then at most the Gaussian curve of
mu = sqrt(s) Delta / sigma, averaged over the law (`visits.gaussian_epsilon`): the path does not depend on data, so
delta is averaged over it, whatever is seen of it [BSA24]. The caller owes steps that contract, and one rate.

How. In a gap of M steps between two visits of observers, each step is the user's with the same chance p. The cost of
the gap is the sum of K^2/L over the pieces of the greatest convex minorant of the number of the user's steps so far,
L the length of a piece and K its rise. This is a random walk with exchangeable increments, so lengths and rises of the
pieces have the law of the cycles of a uniform permutation of the M steps, with K ~ Bin(L, p) of the steps in each
[APRU11]; pieces of equal slope cost the same together as apart. By the exponential formula gaps have the generating
function

    G(z) = sum over M of z^M s^M E e^(i w cost) = exp(sum over L of (s z)^L/L E e^(i w K^2/L)),

s the chance of no observer, and all T steps the coefficient of z^T in G / (1 - (1 - s) z G), taken by Cauchy's
integral over a circle within the disc of convergence. Frequencies w make the law of costs, which are rounded up
to a grid. Costs beyond its end are bounded by Chernoff's inequality.

A user who starts the walk takes one step before all others. In its first gap of m steps, j of them its own, the first
is its own and the others are anywhere; if all j are anywhere, they are later (gaps between them are compositions of m -
j, and Pólya's urn couples those into j parts with those into j + 1), and steps that are taken later cost no less. Where
a gap with j of m steps had a weight, it now has j/(m p) times that. Gaps with one or two of the user's steps are taken
as they are instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Complexes, Floats
from p2pdp.privacy.visits import Law

STEPS_MAX: Final = 4000
MARGIN: Final = 1e-10  # what aliasing and rounding can do to all masses together
_ALIASED: Final = 1e-13
_POINTS: Final = 4  # on the circle for each step
_CELLS: Final = 8192  # of the grid of costs
_WORK: Final = 1 << 24  # numbers on circles, for all frequencies together
_AT_ONCE: Final = 1 << 20
_TAIL: Final = 1e-20  # of the binomial law in a piece
_CUT: Final = 1e-4  # of delta: what may be beyond the grid
_UP: Final = 1.0 + 1e-12


@dataclass(frozen=True)
class Walked:
    """`steps` uniform steps among `n` users, of which `watchers` see the token; with `starts` the user had one more."""

    n: int
    steps: int
    starts: bool
    watchers: int
    tokens: int = 1


def exposure_law(walked: Walked, delta: float) -> Law:
    """Return the law of s, good for questions near this delta; the caller owes no more than `STEPS_MAX` steps."""
    return _exposure_law(walked, 10.0 ** math.floor(math.log10(delta)))


@lru_cache(maxsize=64)
def _exposure_law(walked: Walked, delta: float) -> Law:
    pieces = _Pieces(walked)
    beyond = _CUT * delta
    end = min(_end(pieces, beyond), float(walked.tokens * (walked.steps + walked.starts) + 1))
    cells = _CELLS
    while cells > _CELLS // 16 and cells // 2 * pieces.points > _WORK:
        cells //= 2
    step = end / cells
    spectrum = np.concatenate(
        [
            pieces.ends(piece)
            for piece in np.array_split(pieces.spectra(step, cells), _blocks(cells, pieces.points), axis=1)
        ]
    )
    masses = np.maximum(np.fft.irfft(spectrum**walked.tokens, cells), 0.0)
    lost = max(0.0, 1.0 - float(masses.sum())) + walked.tokens * MARGIN + beyond
    kept = np.flatnonzero(masses)
    return Law(np.asarray(kept * step * _UP), masses[kept] * _UP, lost)


def _blocks(cells: int, points: int) -> int:
    return max(1, cells // 2 * points // _AT_ONCE)


class _Pieces:
    """Pieces of all lengths: the chance of each rise, and the generating functions made of them."""

    def __init__(self, walked: Walked) -> None:
        from scipy.special import gammaln

        self._walked = walked
        self._seen = walked.watchers / walked.n
        self._unseen = 1.0 - self._seen
        self._chance = min(1.0, 1.0 / (walked.n - walked.watchers))
        self._steps = walked.steps
        longest = max(1, walked.steps + walked.starts)
        self.lengths = np.arange(1, longest + 1, dtype=np.float64)
        self.rises = np.arange(_most(longest, self._chance) + 1, dtype=np.float64)
        length, rise = self.lengths[:, None], self.rises[None, :]
        rest = np.maximum(length - rise, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = gammaln(length + 1.0) - gammaln(rise + 1.0) - gammaln(rest + 1.0)
            logs += rise * math.log(self._chance)
            logs += np.where(rest > 0.0, rest * np.log1p(-self._chance), 0.0)
            self.masses = np.where(rise <= length, np.exp(logs), 0.0)
        self.costs = rise * rise / length
        self.points = 1 << math.ceil(math.log2(_POINTS * (longest + 1)))

    def spectra(self, step: float, cells: int) -> Complexes:
        """Return transforms of costs of all that is told by length, one kind below the other: [kind length, w]."""
        count = len(self.lengths)
        rows = np.arange(count)[:, None] * cells

        def table(costs: Floats, weights: Floats) -> Floats:
            places = rows + np.ceil(costs / step).astype(np.int64) % cells
            found = np.bincount(places.ravel(), weights=weights.ravel(), minlength=count * cells)
            return np.asarray(found.reshape(count, cells))

        parts = [table(self.costs, self.masses)]
        if self._walked.starts:
            parts.append(table(self.costs, self.masses * self.rises))
            parts += [table(self.costs[:, [k]], self.masses[:, [k]]) for k in (1, 2)]
            parts.append(table(1.0 / self.lengths[:, None], np.ones((count, 1))))
            at, length = self.lengths[None, :-1], self.lengths[:, None]
            left = np.maximum(length - at, 1.0)
            costs = np.where(2.0 * at <= length, 4.0 / length, 1.0 / at + 1.0 / left)
            parts.append(table(costs, (at < length).astype(np.float64)))
        return np.fft.rfft(np.concatenate(parts), axis=1)

    def ends(self, spectra: Complexes) -> Complexes:
        """Return the transform of the whole walk's cost for each column, a frequency."""
        size = self.points
        radius = math.exp(math.log(_ALIASED) / size)
        circle = _Circle(size, radius, len(self.lengths))
        pieces, *owned = spectra.reshape(-1, len(self.lengths), spectra.shape[1])
        weights = (self._unseen**self.lengths / self.lengths)[:, None]
        z = np.exp(-2j * math.pi * np.arange(size) / size)[:, None] * radius
        gaps = np.exp(circle.values(weights * pieces))
        first = gaps
        if self._walked.starts:
            first = circle.values(self._first(circle, gaps, z, weights, owned)) / z
        whole = first / (1.0 - self._seen * z * gaps)
        turn = np.exp(2j * math.pi * np.arange(size) * self._steps / size)
        return np.asarray((turn @ whole) / (size * radius**self._steps))

    def _first(self, circle: _Circle, gaps: Complexes, z: Complexes, weights: Floats, owned: list[Any]) -> Complexes:
        """Return the transforms of a first gap of each length, that of the user's own first step included."""
        risen, one, two, alone, beside = owned
        once, none = circle.values(weights * one), 1.0 / (1.0 - self._unseen * (1.0 - self._chance) * z)
        twice = circle.values(weights * two) + once * once / 2.0
        spread = circle.coefficients(gaps * circle.values(weights * risen) - none * (once + 2.0 * twice))
        lengths = self.lengths[:, None]
        missed = self._unseen * (1.0 - self._chance)
        found = spread / (lengths * (self._chance * self._unseen))
        found += missed ** (lengths - 1.0) * alone
        found += self._chance * self._unseen * missed ** np.maximum(lengths - 2.0, 0.0) * beside
        return np.asarray(found)

    def log_moment(self, tilt: float) -> float:
        """Return ln E e^(tilt s), infinite where that is beyond all numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.where(self.masses > 0.0, self.masses * np.exp(tilt * self.costs * _UP), 0.0)
            pieces = self._unseen**self.lengths * grown.sum(axis=1)
            gaps = _exponential(pieces, len(self.lengths))
            first = gaps[: self._steps + 1]
            if self._walked.starts:
                weighed = self._unseen**self.lengths * (grown @ self.rises) / self.lengths
                owned = np.convolve(gaps, np.concatenate([[0.0], weighed]))[1 : len(self.lengths) + 1]
                first = owned / (self.lengths * (self._chance * self._unseen))
            whole = np.zeros(self._steps + 1)
            for at in range(self._steps + 1):
                whole[at] = first[at] + (self._seen * (gaps[:at] @ whole[:at][::-1]) if at else 0.0)
        found = float(whole[-1])
        return self._walked.tokens * math.log(found) if 0.0 < found < math.inf else math.inf


@dataclass(frozen=True)
class _Circle:
    """Power series without constant terms, by their values at so many points of a circle, and back."""

    size: int
    radius: float
    count: int

    def values(self, coefficients: Complexes) -> Complexes:
        padded = np.zeros((self.size, coefficients.shape[1]), dtype=np.complex128)
        padded[1 : self.count + 1] = coefficients * self._powers
        return np.fft.fft(padded, axis=0)

    def coefficients(self, values: Complexes) -> Complexes:
        return np.asarray(np.fft.ifft(values, axis=0)[1 : self.count + 1] / self._powers)

    @property
    def _powers(self) -> Floats:
        return np.asarray(self.radius ** np.arange(1, self.count + 1)[:, None])


def _exponential(pieces: Floats, count: int) -> Floats:
    """Return the coefficients of exp(sum of pieces[L - 1] z^L / L)."""
    found = np.zeros(count + 1)
    found[0] = 1.0
    for at in range(1, count + 1):
        found[at] = (pieces[:at] @ found[:at][::-1]) / at
    return found


def _most(steps: int, chance: float) -> int:
    """Return a number of steps that is exceeded with a chance of no more than `_TAIL`, by Chernoff's bound."""
    mean, most = steps * chance, math.ceil(steps * chance) + 1
    while most < steps and most - mean - most * math.log(most / mean) > math.log(_TAIL):
        most += 1
    return min(most, steps)


def _end(pieces: _Pieces, beyond: float) -> float:
    """Return what the cost exceeds with no more than this chance."""
    ends = []
    for tilt in (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0):
        moment = pieces.log_moment(tilt)
        if moment == math.inf:
            break
        ends.append((moment - math.log(beyond)) / tilt)
    return min(ends, default=math.inf)
