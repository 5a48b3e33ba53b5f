"""The draws of one peer, recorded before they are used.

Noise comes from pools: batches drawn at once, because one value of an exact sampler costs eight
times as much alone. A pool is in the private ledger before any of it is used; the view names pool
and offset at use. Pools grow with use, so a peer that draws once draws one value. After a restart
what is left of pools is dropped: what was drawn but never used tells nobody anything.

A peer that has nothing to do draws pools of what it is expected to need, one after another so that a message never
waits for more than one, and within bounds.

On a graph that changes, each pair of peers tosses a coin in each round, with the secret of their channel. The secrets
take one key agreement with everybody else, when the first coin is tossed. A peer without a valid entry in the roster is
met by nobody.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from p2pdp.core.draws import Expected, Mechanism, Sampler, Shape
from p2pdp.core.ids import Peer, is_user
from p2pdp.crypto.channel import Channel, ChannelError
from p2pdp.crypto.pair_coins import PairCoins
from p2pdp.crypto.roster import RosterError
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import CHOSEN, DRAWN
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Entropy

POOL_MAX: Final = 128
POOL_NUMBERS_MAX: Final = 1024  # in all draws of a pool together, some ten milliseconds' work
AHEAD_NUMBERS_MAX: Final = 4096  # of one kind
NOTHING_EXPECTED: Final[Expected] = MappingProxyType({})
Toss = Callable[[int, float], list[Peer]]  # round, probability of an edge -> whom this peer meets


def _alone(_number: int, _coin: float) -> list[Peer]:
    return []


class _Pool:
    """Draws of one kind: a pool of which the last ones are `left`, and further pools in reserve."""

    __slots__ = (
        "_expected",
        "ahead",
        "left",
        "mechanism",
        "names",
        "pool_max",
        "shape",
        "size",
        "terms",
        "used",
        "values",
    )

    def __init__(self, mechanism: Mechanism, shape: Shape, expected: int) -> None:
        self.mechanism = mechanism
        self.shape = shape
        self.names = (*mechanism, list(shape))  # as records have them
        self.terms: tuple[Any, ...] = ()  # with the number of the pool
        self.pool_max = max(1, min(POOL_MAX, POOL_NUMBERS_MAX // math.prod(shape)))
        self.values: list[Any] = []
        self.size = 0
        self.left = 0
        self.used = 0  # of earlier pools
        self._expected = expected
        self.ahead: deque[tuple[int, list[Any]]] = deque()

    @property
    def lacks(self) -> bool:
        """Return whether one more pool of full size in reserve would be used."""
        drawn = self.used + self.size - self.left
        wanted = min(self._expected - drawn, AHEAD_NUMBERS_MAX // math.prod(self.shape))
        return self.left + (len(self.ahead) + 1) * self.pool_max <= wanted

    def open(self) -> None:
        """Go on with the next pool."""
        self.used += self.size
        number, self.values = self.ahead.popleft()
        self.terms = (*self.names, number)
        self.size = self.left = len(self.values)


class RecordedDraws:
    """`core.draws.Draws` over a journal: recorded values in a replay, the sampler's otherwise."""

    def __init__(
        self,
        journal: Journal,
        sampler: Sampler,
        entropy: Entropy,
        toss: Toss = _alone,
        on_used_up: Callable[[], None] = lambda: None,
        expected: Expected = NOTHING_EXPECTED,
    ) -> None:
        """`toss` returns whom this peer meets, from a round and an edge's probability.

        `on_used_up` is called when the next draw of a kind may take its time, for which `prepare` is.
        """
        self._journal = journal
        self._sampler = sampler
        self._entropy = entropy
        self._toss = toss
        self._number = 0
        self._on_used_up = on_used_up
        self._open = {kind: _Pool(*kind, times) for kind, times in expected.items()}
        self._last: _Pool | None = None  # that was drawn from

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        number = self._number
        self._number = number + 1
        journal = self._journal
        if journal.replaying:
            before = self._open.get((mechanism, shape))
            if before is not None:
                before.used += 1
            return journal.drawn_before((number, *mechanism, list(shape)))
        pool = self._last
        if pool is None or pool.mechanism is not mechanism or pool.shape is not shape or not pool.left:
            pool = self._last = self._pool(mechanism, shape)
        left = pool.left
        offset = pool.size - left
        pool.left = left - 1
        journal.bodies.append((DRAWN, number, *pool.terms, offset))
        if left == 1:
            self._on_used_up()
        return pool.values[offset]

    def choice(self, options: int) -> int:
        journal = self._journal
        if journal.replaying:
            return journal.chosen_before(options)
        picked = self._sampler.choice(options)
        journal.bodies.append((CHOSEN, options, picked))
        return picked

    def meet(self, number: int, coin: float) -> list[Peer]:
        return self._journal.meet(number, lambda number: self._toss(number, coin))

    def prepare(self, *, ahead: bool = False) -> None:
        """Go on where pools are used up. This is for idle moments, so that a token need not wait for noise.

        Ahead, one pool more is drawn if there is a kind that lacks one.
        """
        for pool in self._open.values():
            if pool.size and not pool.left:
                self._go_on(pool)
        lacking = next((pool for pool in self._open.values() if pool.lacks), None) if ahead else None
        if lacking is not None:
            self._draw(lacking, lacking.pool_max)

    @property
    def lack(self) -> bool:
        return any(pool.lacks for pool in self._open.values())

    def _pool(self, mechanism: Mechanism, shape: Shape) -> _Pool:
        pool = self._open.get((mechanism, shape))
        if pool is None:
            pool = self._open[mechanism, shape] = _Pool(mechanism, shape, 0)
        if not pool.left:
            self._go_on(pool)
        return pool

    def _go_on(self, pool: _Pool) -> None:
        if not pool.ahead:
            self._draw(pool, min(pool.pool_max, max(1, 2 * pool.size)))
        pool.open()

    def _draw(self, pool: _Pool, size: int) -> None:
        """Record this number of draws, to be used later."""
        mechanism, shape = pool.mechanism, pool.shape
        values = self._sampler.batch(mechanism, shape, size)
        body = (self._sampler.name, mechanism.name, mechanism.scale, mechanism.categories, list(shape), size)
        number = self._journal.add_pool(body, values, self._entropy.salt())
        pool.ahead.append((number, values))


class Meetings:
    def __init__(self, credentials: Credentials, channel: Callable[[Peer], Channel]) -> None:
        self._credentials = credentials
        self._channel = channel

    def toss(self, number: int, coin: float) -> list[Peer]:
        return self._coins.neighbours_in(number, coin)

    @cached_property
    def _coins(self) -> PairCoins:
        secrets: dict[Peer, bytes] = {}
        for peer in filter(is_user, self._credentials.peers()):
            try:
                secrets[peer] = self._channel(peer).pair_secret
            except (ChannelError, RosterError):
                continue
        return PairCoins(secrets)
