"""The draws of one peer, recorded before they are used.

Noise comes from pools: batches drawn and recorded at once, because a value alone costs as much as
some forty together. A pool is in the private ledger before any of it is used; the view names pool
and offset at use. Pools grow with use, so a peer that draws once draws one value. A large vector is a pool of its
own: the next one is drawn ahead from the second use on, so what is used once is drawn once; a very large one is drawn
beside other work by a sampler that can, and recorded when it is used. After a restart
what is left of pools is dropped: what was drawn but never used tells nobody anything.

Draws that two peers share are unfolded from a key that follows from the secret of their channel. So they are never
drawn again, neither by a restart nor at the other end, and what is recorded is the key.

On a graph that changes, each pair of peers tosses a coin in each round, with the same secret. The secrets take one key
agreement with everybody else, when the first coin is tossed. A peer without a valid entry in the roster is met by
nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Protocol, runtime_checkable

from p2pdp.core.draws import Mechanism, Sampler, Shape
from p2pdp.core.ids import Peer, is_user
from p2pdp.crypto.channel import Channel, ChannelError
from p2pdp.crypto.pair_coins import PairCoins, noise_key, noise_salt
from p2pdp.crypto.roster import RosterError
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import CHOSEN, DRAWN, PAIRED
from p2pdp.mechanisms.sampler import StreamSampler
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Entropy

POOL_MAX: Final = 128
POOL_NUMBERS_MAX: Final = 1024  # in all draws of a pool together; in larger pools a number costs little less
AT_ONCE_MAX: Final = 4096  # numbers that are drawn in less time than it takes to have somebody else draw them


@runtime_checkable
class DrawsAhead(Protocol):
    """A sampler that can draw while others work."""

    def ahead(self, mechanism: Mechanism, shape: Shape, count: int) -> None:
        """Begin to draw what the next `batch` with these terms is to return."""


class Shared(Protocol):
    """The coins and keys that a peer shares with others."""

    def toss(self, number: int, coin: float) -> list[Peer]:
        """Return whom this peer meets in a round, where an edge has this probability."""

    def key(self, peer: Peer, number: int) -> bytes:
        """Return the key of the draw of this number with a peer."""


class _Alone:
    def toss(self, number: int, coin: float) -> list[Peer]:
        return []

    def key(self, peer: Peer, number: int) -> bytes:
        raise LookupError("this peer shares nothing with others")


class _Pool:
    """Draws of one kind, of which the last ones are `left`."""

    __slots__ = ("filled", "left", "mechanism", "names", "pool_max", "shape", "size", "terms", "values")

    def __init__(self, mechanism: Mechanism, shape: Shape) -> None:
        self.mechanism = mechanism
        self.shape = shape
        self.names = (*mechanism, list(shape))  # as records have them
        self.terms: tuple[Any, ...] = ()  # with the number of the pool
        self.pool_max = max(1, min(POOL_MAX, POOL_NUMBERS_MAX // math.prod(shape)))
        self.values: list[Any] = []
        self.filled = 0  # times
        self.size = 0
        self.left = 0


class RecordedDraws:
    """`core.draws.Draws` over a journal: recorded values in a replay, the sampler's otherwise."""

    def __init__(
        self,
        journal: Journal,
        sampler: Sampler,
        entropy: Entropy,
        shared: Shared | None = None,
        on_used_up: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_used_up` is called when the next draw of a kind may take its time, for which `prepare` is."""
        self._journal = journal
        self._sampler = sampler
        self._ahead = sampler if isinstance(sampler, DrawsAhead) else None
        self._entropy = entropy
        self._shared = _Alone() if shared is None else shared
        self._number = 0
        self._on_used_up = on_used_up
        self._open: dict[tuple[Mechanism, Shape], _Pool] = {}
        self._last: _Pool | None = None  # that was drawn from

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        number = self._number
        self._number = number + 1
        journal = self._journal
        if journal.replaying:
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
        return self._journal.meet(number, lambda number: self._shared.toss(number, coin))

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        key = self._shared.key(peer, number)
        self._journal.append(PAIRED, (peer, number, *mechanism, list(shape)), key, noise_salt(key))
        return StreamSampler(key).batch(mechanism, shape, 1)[0]

    def pair_key(self, peer: Peer, number: int) -> bytes:
        return self._shared.key(peer, number)

    def prepare(self) -> None:
        """Go on where pools are used up. This is for idle moments, so that a token need not wait for noise."""
        for pool in self._open.values():
            if not pool.size or pool.left:
                continue
            if pool.pool_max > 1:
                self._draw(pool)
            elif pool.filled > 1 and self._ahead is not None and math.prod(pool.shape) > AT_ONCE_MAX:
                self._ahead.ahead(pool.mechanism, pool.shape, 1)
            elif pool.filled > 1:
                self._draw(pool)

    def _pool(self, mechanism: Mechanism, shape: Shape) -> _Pool:
        pool = self._open.get((mechanism, shape))
        if pool is None:
            pool = self._open[mechanism, shape] = _Pool(mechanism, shape)
        if not pool.left:
            self._draw(pool)
        return pool

    def _draw(self, pool: _Pool) -> None:
        """Record draws, twice as many as the last time, to be used later."""
        size = min(pool.pool_max, max(1, 2 * pool.size))
        pool.values = self._sampler.batch(pool.mechanism, pool.shape, size)
        body = (self._sampler.name, *pool.names, size)
        number = self._journal.add_pool(body, pool.values, self._entropy.salt())
        pool.terms = (*pool.names, number)
        pool.size = pool.left = size
        pool.filled += 1


class Meetings:
    """The coins and keys that a peer shares with each of the others."""

    def __init__(self, credentials: Credentials, channel: Callable[[Peer], Channel]) -> None:
        self._credentials = credentials
        self._channel = channel

    def toss(self, number: int, coin: float) -> list[Peer]:
        return self._coins.neighbours_in(number, coin)

    def key(self, peer: Peer, number: int) -> bytes:
        return noise_key(self._channel(peer).pair_secret, number)

    @cached_property
    def _coins(self) -> PairCoins:
        secrets: dict[Peer, bytes] = {}
        for peer in filter(is_user, self._credentials.peers()):
            try:
                secrets[peer] = self._channel(peer).pair_secret
            except (ChannelError, RosterError):
                continue
        return PairCoins(secrets)
