"""Pairs of many users, looked at in blocks of observers, so that memory grows with users and not with pairs.

Up to `HELD_MAX` users every account holds matrices of all pairs. With more, claims and pages need the largest and the
smallest value, means and counts, which are exact here too. They do not depend on the number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.claims import Claim, Conditioning, Observer, Protected
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import epsilons_of

HELD_MAX: Final = 4000  # users of whom all pairs are held
BLOCK_PAIRS: Final = 1 << 22  # that are looked at together
_LEAST: Final = -np.finfo(np.float64).max


def blocks_of(observers: int, users: int) -> Iterator[slice]:
    """Yield so many observers in blocks whose pairs with all users are looked at together."""
    size = max(1, BLOCK_PAIRS // users)
    return (slice(start, min(start + size, observers)) for start in range(0, observers, size))


@dataclass(frozen=True, slots=True)
class PairTotals:
    """The worst observer of each user, with epsilon and mu of that pair, and the mean of all its observers.

    NaN and -1 mark users about whom nothing is known. `best` is the pair with the least epsilon, with that and its mu.
    """

    observer: Ints
    epsilon: Floats
    mu: Floats
    mean: Floats
    best: tuple[Peer, Peer, float, float]
    pairs: int
    infinite: int

    def with_cost(self, epsilon: float) -> PairTotals:
        """Return the same where another mechanism on the same data cost this epsilon: then there is no mu."""
        none = np.full_like(self.mu, math.nan)
        best = (*self.best[:2], self.best[2] + epsilon, math.nan)
        return replace(self, epsilon=self.epsilon + epsilon, mean=self.mean + epsilon, mu=none, best=best)


class _Most:
    """The largest value of each user over all observers, with what is beside it; of equal ones the first."""

    def __init__(self, users: int) -> None:
        self.values = np.full(users, -math.inf)
        self.observers = np.full(users, -1)
        self.beside = np.full(users, math.nan)

    def add(self, observers: Ints, values: Floats, beside: Floats) -> None:
        """Take in a column for each of these observers, who come in ascending order; NaN is no pair."""
        given = np.where(np.isnan(values), -math.inf, values)
        rows, at = np.arange(len(given)), given.argmax(axis=1)
        more = given[rows, at] > self.values
        self.values[more] = given[rows, at][more]
        self.observers[more] = observers[at][more]
        self.beside[more] = beside[rows, at][more]


class Gathering:
    """Takes in mu of blocks of pairs at one delta; sums are added up without rounding between blocks."""

    def __init__(self, users: int, delta: float) -> None:
        self._delta = delta
        self._worst, self._best, self._told = _Most(users), _Most(users), _Most(users)
        self._sums: list[Floats] = []
        self._counts = np.zeros(users, dtype=np.int64)
        self._told_sums: list[float] = []
        self._infinite = 0

    def add(self, observers: Sequence[Peer], mu: Floats, told: Floats) -> None:
        """Take in mu [user, observer] of these observers, and `told`, which has all that claims add to it."""
        seers, epsilon = np.array(observers, dtype=np.int64), epsilons_of(self._delta, told)
        there = ~np.isnan(epsilon)
        self._worst.add(seers, epsilon, mu)
        self._best.add(seers, np.maximum(-epsilon, _LEAST), mu)  # an infinite epsilon is one of a pair too
        self._told.add(seers, told, told)
        self._sums.append(np.where(there, epsilon, 0.0).sum(axis=1))
        self._counts += there.sum(axis=1)
        self._told_sums.append(float(np.where(there, told, 0.0).sum()))
        self._infinite += int(np.isinf(epsilon).sum())

    @property
    def pairs(self) -> int:
        return int(self._counts.sum())

    def claim(self, protected: Protected, method: str, assumptions: Sequence[str]) -> Claim:
        """Return the claim about single users as observers, who know the route."""
        user = int(np.argmax(self._told.values))
        most, count = float(self._told.values[user]), self.pairs
        mean = math.fsum(math.fsum(sums.tolist()) for sums in self._sums) / count
        return claim_of(
            protected,
            Observer.NODE,
            method,
            Conditioning.PUBLIC,
            self._delta,
            (user, int(self._told.observers[user])),
            assumptions,
            epsilon=(gaussian.epsilon_of(self._delta, most), mean),
            mu=(most, math.fsum(self._told_sums) / count),
        )

    def totals(self) -> PairTotals:
        known = self._counts > 0
        sums = np.array([math.fsum(several) for several in zip(*(one.tolist() for one in self._sums), strict=True)])
        best = int(np.argmax(self._best.values))
        return PairTotals(
            self._worst.observers,
            np.where(known, self._worst.values, math.nan),
            self._worst.beside,
            np.where(known, sums / np.maximum(self._counts, 1), math.nan),
            (
                best,
                int(self._best.observers[best]),
                _epsilon_of(self._best.values[best]),
                float(self._best.beside[best]),
            ),
            self.pairs,
            self._infinite,
        )


def _epsilon_of(least: float) -> float:
    return math.inf if least == _LEAST else -float(least)
