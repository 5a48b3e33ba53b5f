"""Bounds what an observer of walks on any connected graph, who does not see their paths, learns of each user's value.

As in `complete.py`, with the law of the user's contributions in each gap from `GraphLaws`. Upper ends count
the observer as told these numbers (see `losses.py`): a path round a user may lead to quite different
others, whose values are anything. So the losses of a gap are a mixture of those of Gaussians at c mu, which all users
share; only the weights are a pair's own.

The grid of a pair is as fine as its own losses need, in powers of two, so that pairs share what they can.

`GraphLaws`: how often each user contributed in a gap of an observer.

The next holder is a uniform neighbour. Given the observer's visits, a stretch of M slots is a walk that stays away
from the observer, from a known or randomly chosen first holder to a known last one or to any. The number c of its
slots at user u has the coefficients of [(DQ)^(M-1) D] in z, D = diag(z at u, else 1), Q the walk without the observer.

With A(t) = sum of t^m Q^m, a, b and B its entries from the first slot to u, from u to the last slot and from u to u,
inverting the rank-one change gives the coefficients of t^(M-1) in

    P(c >= k) = [first passage a/B] [first return 1 - 1/B]^(k-1) b,

divided by that of A from first to last: power series, for all users at once. Q is similar to a symmetric
matrix, so its powers come from one eigendecomposition for each observer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from p2pdp.core.arrays import Complexes, Each, Floats, Ints, one_by_one
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.privacy.hidden_path.complete import check
from p2pdp.privacy.hidden_path.curves import Curves, Ends, Part, law_cut
from p2pdp.privacy.hidden_path.gaps import Gap, Stretch
from p2pdp.privacy.hidden_path.losses import upper_losses
from p2pdp.privacy.pld.losses import Losses
from p2pdp.privacy.pld.sums import Moments, Upper, power, spectrum

GRAPH_USERS_MAX: Final = 300  # the work grows with the third power
_SPREADER: Final = 0
_STEP: Final = 0.15  # at most, of the typical loss of one gap, and half of that at least
_LEVELS: Final = (-60, 4)  # of steps, as powers of two
_KEPT_MAX: Final = 20_000  # losses of parts
_NUMBERS_MAX: Final = 1 << 24  # about, in spectra


def general_graph(
    neighbours: Sequence[Sequence[Peer]],
    gaps: Sequence[Sequence[Gap]],
    mu_upper: float,
    mu_lower: float,
    delta: float,
    each: Each = one_by_one,
) -> Ends:
    """Return upper ends for all pairs [user, observer], and the lower end of the largest one, NaN elsewhere.

    An entry of `gaps` for each observer. Where starts are hidden, user 0 chose each from its neighbours.
    """
    n = len(neighbours)
    check(n, len(gaps), mu_upper, mu_lower, delta)
    if n > GRAPH_USERS_MAX:
        raise UsageError(f"Hidden paths on graphs are accounted for up to {GRAPH_USERS_MAX} users.")
    ends = Ends(*(np.full((n, n), np.nan) for _ in Ends._fields))
    most = max((len(seen) for seen in gaps), default=1)
    sums = _Sums(mu_upper, delta, most)

    def row(observer: int) -> Floats:
        """Return epsilons and variations of all users against one observer."""
        laws = GraphLaws(neighbours, observer, _SPREADER, law_cut(delta, most))
        ends_of = np.full((2, n), np.nan)
        ends_of[:, laws.others] = sums.ends(laws, Counter(gaps[observer]))
        return ends_of.reshape(-1)

    rows = np.array(each(n, row)).reshape(n, 2, n)
    ends.upper[:], ends.variation[:] = rows[:, 0].T, rows[:, 1].T
    if n > 1:
        user, seer = divmod(int(np.nanargmax(ends.upper)), n)
        laws = GraphLaws(neighbours, seer, _SPREADER, law_cut(delta, most))
        ends.lower[user, seer] = _lower(laws, laws.others.index(user), gaps[seer], mu_lower, delta)
    return ends


def _lower(laws: GraphLaws, place: int, gaps: Sequence[Gap], mu: float, delta: float) -> float:
    parts = []
    for gap in gaps:
        tails = np.maximum(laws.tails(gap)[place] - laws.margin(gap), 0.0)
        tails[0] = 1.0
        root = math.sqrt(_length(gap))
        parts.append(Part(-np.diff(tails, append=0.0), mu / root, mu / root, 1.0))
    if not parts:
        return 0.0
    curves = Curves(parts, np.ones(len(parts)), len(parts), len(parts), delta)
    return float(curves.epsilons(dict.fromkeys(range(len(parts)), 1), [()]).lower[0])


def _length(gap: Gap) -> int:
    return sum(stretch.length for stretch in gap)


class _Sums:
    """Upper ends of sums of mixtures of Gaussian losses; what is shared by all observers."""

    def __init__(self, mu: float, delta: float, most: int) -> None:
        self._mu, self._delta, self._most = mu, delta, max(most, 1)
        self._moments = lru_cache(self._moments_of)
        self._losses = lru_cache(_KEPT_MAX)(self._losses_of)
        self._log_moments = lru_cache(_KEPT_MAX)(self._log_moments_of)
        self._spectra: dict[tuple[int, int, int], Complexes] = {}

    def ends(self, laws: GraphLaws, gaps: Counter[Gap]) -> Upper:
        """Return the upper end of each of the others."""
        found = Upper(np.zeros(len(laws.others)), np.zeros(len(laws.others)))
        if not gaps or self._mu == 0.0:
            return found
        weights = [(-np.diff(laws.tails(gap), axis=1, append=0.0), _length(gap), count) for gap, count in gaps.items()]
        margin = sum(laws.margin(gap) * count for gap, count in gaps.items())
        spread = np.zeros(len(laws.others))  # the sum of squared losses to be expected, and of how many gaps
        telling = np.zeros(len(laws.others))
        for law, length, count in weights:
            mus = np.arange(law.shape[1]) * self._mu / math.sqrt(length)
            spread += count * (law @ (mus**2 + mus**4 / 4))
            telling += count * (1.0 - law[:, 0])
        steps = _STEP * np.sqrt(np.maximum(spread, 1e-300) / np.maximum(telling, 1e-300))
        levels = np.clip(np.floor(np.log2(steps)), *_LEVELS).astype(np.int64)
        for level in np.unique(levels[telling > 0.0]):
            users = np.nonzero((levels == level) & (telling > 0.0))[0]
            found.epsilons[users], found.variation[users] = self._of_level(users, int(level), weights, margin)
        return found

    def _of_level(self, users: Ints, level: int, weights: list[tuple[Floats, int, int]], margin: float) -> Upper:
        step = 2.0**level
        moments = self._moments(level)
        logs = np.zeros((len(users), len(moments.exponents)))
        beyond = np.full(len(users), margin)
        for law, length, count in weights:
            losses = [self._losses(length, times, level) for times in range(law.shape[1])]
            each = np.array([self._log_moments(length, times, level) for times in range(law.shape[1])])
            with np.errstate(divide="ignore"):
                logs += count * np.logaddexp.reduce(np.log(law[users])[:, :, None] + each, axis=1)
            beyond += count * (law[users] @ np.array([one.infinite for one in losses]))
        sizes = moments.size(logs, self._delta, step)
        found = Upper(np.zeros(len(users)), np.zeros(len(users)))
        total = sum(count for _, _, count in weights)
        for size in np.unique(sizes):
            rows = np.nonzero(sizes == size)[0]
            summed = np.ones((len(rows), int(size) // 2 + 1), dtype=np.complex128)
            for law, length, count in weights:
                parts = np.array([self._spectrum(length, times, level, int(size)) for times in range(law.shape[1])])
                mixed = (law[users[rows]] @ parts.view(np.float64)).view(np.complex128)
                summed *= power(mixed, count)
            ends = moments.upper(summed, logs[rows], step, self._delta, beyond[rows], total)
            found.epsilons[rows], found.variation[rows] = ends
        return found

    def _moments_of(self, level: int) -> Moments:
        scale = 2.0**level / _STEP
        return Moments(scale, 2.0 * scale * math.sqrt(self._most))

    def _log_moments_of(self, length: int, times: int, level: int) -> Floats:
        return self._losses(length, times, level).log_moments(self._moments(level).exponents)

    def _losses_of(self, length: int, times: int, level: int) -> Losses:
        law = np.zeros(times + 1)
        law[times] = 1.0
        return upper_losses(law, self._mu / math.sqrt(length), 2.0**level, law_cut(self._delta, self._most), 1.0)

    def _spectrum(self, length: int, times: int, level: int, size: int) -> Complexes:
        key = length * (length + 1) + times, level, size
        if key not in self._spectra:
            if len(self._spectra) * size >= _NUMBERS_MAX:
                self._spectra.clear()
            self._spectra[key] = spectrum(self._losses(length, times, level), size)
        return self._spectra[key]


_ROUNDING: Final = 4e-16  # of a coefficient, for each doubling of its series, relative to the largest
_ROUNDING_MAX: Final = 1e3
_LENGTH_MIN: Final = 32


class GraphLaws:
    """Laws for one observer. `spreader` is the user who sent tokens to random neighbours, where starts are hidden."""

    def __init__(self, neighbours: Sequence[Sequence[Peer]], observer: Peer, spreader: Peer, cut: float) -> None:
        n = len(neighbours)
        self._n, self._cut = n, cut
        self.others = [user for user in range(n) if user != observer]
        self._place = {user: place for place, user in enumerate(self.others)}
        self._spread = [user for user in neighbours[spreader] if user != observer]
        self._roots = np.sqrt([float(len(neighbours[user])) for user in self.others])
        walk = np.zeros((n - 1, n - 1))
        for user in self.others:
            for other in neighbours[user]:
                if other != observer:
                    walk[self._place[user], self._place[other]] = 1.0
        values, self._vectors = np.linalg.eigh(walk / np.outer(self._roots, self._roots))
        largest = float(np.abs(values).max(initial=0.0))
        self._values = values / largest if largest > 0.0 else values
        self._returns: dict[int, _Returns] = {}
        self._passages: dict[tuple[int, Peer | None], list[Floats]] = {}
        self._known: dict[Stretch, tuple[Floats, float]] = {}

    def tails(self, gap: Gap) -> Floats:
        """Return P(c >= k) for each of `others` and k = 0, 1, ... in this gap, off by `margin` at most."""
        found = self._stretch(gap[0])[0]
        for stretch in gap[1:]:
            one, two = (-np.diff(tails, axis=1, append=0.0) for tails in (found, self._stretch(stretch)[0]))
            law = np.array([np.convolve(*pair) for pair in zip(one, two, strict=True)])
            found = np.minimum(np.cumsum(law[:, ::-1], axis=1)[:, ::-1], 1.0)
        return found[:, : max(1, int(np.count_nonzero(found.max(axis=0) > self._cut)))]

    def margin(self, gap: Gap) -> float:
        return min(1.0, sum(self._stretch(stretch)[1] for stretch in gap) + self._cut)

    def _stretch(self, stretch: Stretch) -> tuple[Floats, float]:
        if stretch not in self._known:
            self._known[stretch] = self._tails(stretch)
        return self._known[stretch]

    def _tails(self, stretch: Stretch) -> tuple[Floats, float]:
        length = max(_LENGTH_MIN, 1 << (stretch.length - 1).bit_length())
        if length not in self._returns:
            self._returns[length] = _Returns(self._values, self._vectors, length)
        returns = self._returns[length]
        begins, ends = self._begins(stretch.first), self._ends(stretch.last)
        last = stretch.length - 1
        likelihood = float((begins * ends) @ returns.powers[:, last])
        rounding = _ROUNDING * math.log2(length) * float(np.linalg.norm(begins) * np.linalg.norm(ends))
        if not likelihood > _ROUNDING_MAX * rounding:  # a path so unlikely that its law cannot be told from rounding
            return np.ones((len(self.others), 1)), 1.0
        margin = max(self._cut, rounding / likelihood)
        after = (self._vectors / self._roots[:, None] * ends) @ returns.powers[:, : last + 1]
        key = length, stretch.first
        if key not in self._passages:
            arrivals = (self._vectors * self._roots[:, None] * begins) @ returns.powers
            self._passages[key] = [_product(arrivals, returns.inverse, length)]
        passages, tails = self._passages[key], [np.ones(len(self.others))]
        while len(tails) <= stretch.length:
            if len(passages) < len(tails):
                passages.append(returns.once_more(passages[-1]))
            share = np.einsum("um,um->u", passages[len(tails) - 1][:, : last + 1], after[:, ::-1]) / likelihood
            if share.max() <= margin:
                break
            tails.append(np.clip(share, 0.0, tails[-1]))
        return np.stack(tails, axis=1), 2.0 * margin

    def _begins(self, first: Peer | None) -> Floats:
        """Return what the walk starts from, in the coordinates of the eigenvectors."""
        users = self._spread if first is None else [first]
        places = [self._place[user] for user in users]
        found: Floats = (self._vectors[places] / self._roots[places, None]).sum(axis=0)
        return found

    def _ends(self, last: Peer | None) -> Floats:
        places = [self._place[last]] if last is not None else list(range(len(self.others)))
        found: Floats = (self._vectors[places] * self._roots[places, None]).sum(axis=0)
        return found


class _Returns:
    """Power series up to t^(length - 1), a row for each user: all returns inverted, and first returns."""

    def __init__(self, values: Floats, vectors: Floats, length: int) -> None:
        self._length = length
        self.powers: Floats = values[:, None] ** np.arange(length)
        self.inverse = self._inverse(vectors**2 @ self.powers)
        first = np.maximum(-self.inverse, 0.0)
        first[:, 0] = 0.0
        self._first = np.fft.rfft(first, 2 * length)

    def once_more(self, series: Floats) -> Floats:
        """Multiply by first returns."""
        size = 2 * self._length
        found: Floats = np.fft.irfft(np.fft.rfft(series, size) * self._first, size)[:, : self._length]
        return found

    def _inverse(self, series: Floats) -> Floats:
        """Invert by Newton's iteration, which doubles the number of right coefficients; the first of `series` is 1."""
        found = np.ones((len(series), 1))
        while found.shape[1] < self._length:
            size = 2 * found.shape[1]
            error = -_product(series[:, :size], found, size)
            error[:, 0] += 2.0
            found = _product(found, error, size)
        return found


def _product(one: Floats, two: Floats, length: int) -> Floats:
    size = one.shape[1] + two.shape[1]
    found: Floats = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(two, size), size)[:, :length]
    return found
