"""How much each user's one value tells an observer of walks on any connected graph who does not see their paths.

As `hidden_path`, with the law of the user's contributions in each gap from `hidden_path_graph_laws`. Upper ends count
the observer as told these numbers (see `hidden_path_losses`): a path round a user may lead to quite different
others, whose values are anything. So the losses of a gap are a mixture of those of Gaussians at c mu, which all users
share; only the weights are a pair's own.

The grid of a pair is as fine as its own losses need, in powers of two, so that pairs share what they can.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from p2pdp.accounting.hidden_path import check
from p2pdp.accounting.hidden_path_curves import Curves, Ends, Part, law_cut
from p2pdp.accounting.hidden_path_gaps import Gap
from p2pdp.accounting.hidden_path_graph_laws import GraphLaws
from p2pdp.accounting.hidden_path_losses import Losses, upper_losses
from p2pdp.accounting.hidden_path_sums import Moments, Upper, spectrum, upper_ends
from p2pdp.core.arrays import Complexes, Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer

GRAPH_USERS_MAX: Final = 300  # the work grows with the third power
_SPREADER: Final = 0
_STEP: Final = 0.15  # at most, of the typical loss of one gap, and half of that at least
_LEVELS: Final = (-60, 4)  # of steps, as powers of two
_KEPT_MAX: Final = 20_000  # losses of parts
_NUMBERS_MAX: Final = 1 << 24  # about, in spectra


def general_graph(
    neighbours: Sequence[Sequence[Peer]], gaps: Sequence[Sequence[Gap]], mu_upper: float, mu_lower: float, delta: float
) -> Ends:
    """Upper ends for all pairs [user, observer]; the lower end of the pair with the largest, NaN elsewhere.

    An entry of `gaps` for each observer. Where starts are hidden, user 0 chose each from its neighbours.
    """
    n = len(neighbours)
    check(n, len(gaps), mu_upper, mu_lower, delta)
    if n > GRAPH_USERS_MAX:
        raise UsageError(f"Hidden paths on graphs are accounted for up to {GRAPH_USERS_MAX} users.")
    ends = Ends(*(np.full((n, n), np.nan) for _ in Ends._fields))
    most = max((len(seen) for seen in gaps), default=1)
    sums = _Sums(mu_upper, delta, most)
    for observer, seen in enumerate(gaps):
        laws = GraphLaws(neighbours, observer, _SPREADER, law_cut(delta, most))
        found = sums.ends(laws, Counter(seen))
        ends.upper[laws.others, observer] = found.epsilons
        ends.variation[laws.others, observer] = found.variation
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
        """Of each of the others."""
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
            beyond += count * (law[users] @ np.array([one.beyond for one in losses]))
        sizes = moments.size(logs, self._delta, step)
        found = Upper(moments.epsilon(logs, self._delta - beyond), np.ones(len(users)))
        for size in np.unique(sizes):
            rows = np.nonzero(sizes == size)[0]
            summed = np.ones((len(rows), int(size) // 2 + 1), dtype=np.complex128)
            for law, length, count in weights:
                parts = np.array([self._spectrum(length, times, level, int(size)) for times in range(law.shape[1])])
                mixed = (law[users[rows]] @ parts.view(np.float64)).view(np.complex128)
                summed *= mixed if count == 1 else mixed**count
            tail = np.exp(np.minimum(moments.log_tail(logs[rows], np.full(len(rows), size / 2 * step)), 0.0))
            count = sum(count for _, _, count in weights)
            by_window, found.variation[rows] = upper_ends(summed, step, self._delta, beyond[rows], tail, count)
            found.epsilons[rows] = np.minimum(found.epsilons[rows], by_window)
        return found

    def _moments_of(self, level: int) -> Moments:
        scale = 2.0**level / _STEP
        return Moments(scale, 2.0 * scale * math.sqrt(self._most))

    def _log_moments_of(self, length: int, times: int, level: int) -> Floats:
        return self._moments(level).of(self._losses(length, times, level), 2.0**level)

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
