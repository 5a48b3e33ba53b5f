"""What transports share that call their peers: who has frames waiting is called until they are gone.

Guarantee: one dial a peer at a time. One that failed, or whose way brought nothing, is followed by a wait that doubles
up to `DIAL_WAIT_MAX_S`; dials go on as long as frames are waiting.

The caller owes: `where` tells the place of a peer, or None while it is not known, and does not raise.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from p2pdp.core.ids import Peer
from p2pdp.transports.contract import Shell
from p2pdp.transports.ways import Way, Ways

DIAL_WAIT_S: Final = 0.02
DIAL_WAIT_MAX_S: Final = 2.0

Place = TypeVar("Place")


class Dialling(Ways, Generic[Place]):
    def __init__(self, shell: Shell, where: Callable[[Peer], Place | None], ways_max: int) -> None:
        super().__init__(shell, ways_max)
        self._where = where
        self._dials: dict[Peer, asyncio.Task[None]] = {}
        self._waits_s: dict[Peer, float] = {}  # before the next dial, where the last one came to nothing

    @abstractmethod
    async def _call(self, peer: Peer, place: Place) -> None:
        """One attempt; `opened` where something came of it."""

    def closed(self, way: Way) -> None:
        if way.peer is not None and way.heard:
            self._waits_s.pop(way.peer, None)
        super().closed(way)

    def _reach(self, peer: Peer) -> None:
        if peer not in self._dials:
            self._dials[peer] = asyncio.get_running_loop().create_task(self._dial(peer), name=f"dial {peer}")

    async def _give_up(self) -> None:
        dials = list(self._dials.values())
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    async def _dial(self, peer: Peer) -> None:
        """Until no frame waits: a way takes them along when it opens, whoever opened it."""
        try:
            while peer in self._queues:
                wait_s = self._waits_s.get(peer, 0.0)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                self._waits_s[peer] = min(max(DIAL_WAIT_S, 2 * wait_s), DIAL_WAIT_MAX_S)
                place = self._where(peer)
                if place is not None and peer in self._queues:
                    await self._call(peer, place)
        finally:
            self._dials.pop(peer, None)
