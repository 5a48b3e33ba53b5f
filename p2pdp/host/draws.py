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

POOL_MAX: Final = 128
Toss = Callable[[int, float], list[Peer]]  # round, probability of an edge -> whom this peer meets


def _alone(_number: int, _coin: float) -> list[Peer]:
    return []


class RecordedDraws:
    """`core.draws.Draws` over a journal: recorded values in a replay, the sampler's otherwise."""

    def __init__(self, journal: Journal, sampler: Sampler, entropy: Entropy, toss: Toss = _alone) -> None:
        self._journal = journal
        self._sampler = sampler
        self._entropy = entropy
        self._toss = toss
        self._number = 0
        self.used_up = False  # a pool is: the next draw from it would take its time
        self._open: dict[tuple[Mechanism, Shape], tuple[int, int, int]] = {}  # pool, next offset, size

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        body = (self._number, *mechanism, list(shape))
        self._number += 1
        return self._journal.draw(body, self._pick, mechanism, shape)

    def choice(self, options: int) -> int:
        return self._journal.choose(options, self._sampler.choice)

    def meet(self, number: int, coin: float) -> list[Peer]:
        return self._journal.meet(number, lambda number: self._toss(number, coin))

    def prepare(self) -> None:
        """Fills pools that are used up: for idle moments, so that a token need not wait for noise."""
        for (mechanism, shape), (_, offset, size) in list(self._open.items()):
            if offset == size:
                self._fill(mechanism, shape, size)

    def _pick(self, mechanism: Mechanism, shape: Shape) -> tuple[int, int]:
        kind = mechanism, shape
        pool, offset, size = self._open.get(kind) or (-1, 0, 0)
        if offset == size:
            pool, offset, size = self._fill(mechanism, shape, size)
        self._open[kind] = (pool, offset + 1, size)
        if offset + 1 == size:
            self.used_up = True
        return pool, offset

    def _fill(self, mechanism: Mechanism, shape: Shape, previous_size: int) -> tuple[int, int, int]:
        size = min(POOL_MAX, max(1, 2 * previous_size))
        values = self._sampler.batch(mechanism, shape, size)
        body = (self._sampler.name, mechanism.name, mechanism.scale, mechanism.categories, list(shape), size)
        pool = self._journal.add_pool(body, values, self._entropy.salt())
        self._open[(mechanism, shape)] = (pool, 0, size)
        self._journal.forget_pools({number for number, _, _ in self._open.values()})
        return pool, 0, size
