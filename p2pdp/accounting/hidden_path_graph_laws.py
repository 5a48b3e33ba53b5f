"""How often each user contributed in a gap of an observer, for a walk on any connected graph.

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
from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.accounting.hidden_path_gaps import Gap, Stretch
from p2pdp.core.arrays import Floats
from p2pdp.core.ids import Peer

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
        """P(c >= k) for each of `others` and k = 0, 1, ... in this gap: too high or too low by `margin` at most."""
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
        """What the walk starts from, in the coordinates of the eigenvectors."""
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
        """Times first returns."""
        size = 2 * self._length
        found: Floats = np.fft.irfft(np.fft.rfft(series, size) * self._first, size)[:, : self._length]
        return found

    def _inverse(self, series: Floats) -> Floats:
        """Newton's iteration; each round doubles the number of right coefficients. The first of `series` is 1."""
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
