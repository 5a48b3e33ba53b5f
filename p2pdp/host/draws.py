"""The draws of one peer, recorded before they are used.

Noise comes from pools: batches drawn at once, because one value of an exact sampler costs eight
times as much alone. A pool is in the private ledger before any of it is used; the view names pool
and offset at use. Pools grow with use, so a peer that draws once draws one value. After a restart
the unused rest of a pool is dropped: what was drawn but never used tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from p2pdp.core.draws import Mechanism, Sampler, Shape
from p2pdp.core.ids import Peer
from p2pdp.host.effects import Entropy
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import CHOSEN, DRAWN

POOL_MAX: Final = 128
Toss = Callable[[int, float], list[Peer]]  # round, probability of an edge -> whom this peer meets


def _alone(_number: int, _coin: float) -> list[Peer]:
    return []


class _Pool:
    """Draws of one kind, of which the last ones are `left`."""

    __slots__ = ("left", "mechanism", "shape", "size", "terms", "values")

    def __init__(self, mechanism: Mechanism, shape: Shape) -> None:
        self.mechanism = mechanism
        self.shape = shape
        self.terms: tuple[Any, ...] = ()  # as records name them
        self.values: list[Any] = []
        self.size = 0
        self.left = 0


class RecordedDraws:
    """`core.draws.Draws` over a journal: recorded values in a replay, the sampler's otherwise."""

    def __init__(self, journal: Journal, sampler: Sampler, entropy: Entropy, toss: Toss = _alone) -> None:
        """`toss` tells from a round and the probability of an edge whom this peer meets."""
        self._journal = journal
        self._sampler = sampler
        self._entropy = entropy
        self._toss = toss
        self._number = 0
        self.used_up = False  # a pool is: the next draw from it would take its time
        self._open: dict[tuple[Mechanism, Shape], _Pool] = {}
        self._last: _Pool | None = None  # that was drawn from

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        number, self._number = self._number, self._number + 1
        journal = self._journal
        if journal.replaying:
            return journal.drawn_before((number, *mechanism, list(shape)))
        pool = self._last
        if pool is None or pool.mechanism is not mechanism or pool.shape != shape or not pool.left:
            pool = self._last = self._pool(mechanism, shape)
        left = pool.left = pool.left - 1
        offset = pool.size - left - 1
        journal.bodies.append((DRAWN, number, *pool.terms, offset))
        journal.values.append(b"")
        if not left:
            self.used_up = True
        return pool.values[offset]

    def choice(self, options: int) -> int:
        journal = self._journal
        if journal.replaying:
            return journal.chosen_before(options)
        picked = self._sampler.choice(options)
        journal.bodies.append((CHOSEN, options, picked))
        journal.values.append(b"")
        return picked

    def meet(self, number: int, coin: float) -> list[Peer]:
        return self._journal.meet(number, lambda number: self._toss(number, coin))

    def prepare(self) -> None:
        """Fills pools that are used up: for idle moments, so that a token need not wait for noise."""
        for pool in self._open.values():
            if not pool.left:
                self._fill(pool)

    def _pool(self, mechanism: Mechanism, shape: Shape) -> _Pool:
        pool = self._open.get((mechanism, shape))
        if pool is None:
            pool = self._open[mechanism, shape] = _Pool(mechanism, shape)
        if not pool.left:
            self._fill(pool)
        return pool

    def _fill(self, pool: _Pool) -> None:
        mechanism, shape = pool.mechanism, pool.shape
        size = min(POOL_MAX, max(1, 2 * pool.size))
        values = self._sampler.batch(mechanism, shape, size)
        body = (self._sampler.name, mechanism.name, mechanism.scale, mechanism.categories, list(shape), size)
        number = self._journal.add_pool(body, values, self._entropy.salt())
        pool.terms = (*mechanism, list(shape), number)
        pool.values, pool.size, pool.left = values, size, size
