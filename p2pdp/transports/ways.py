"""What transports made of connections have in common: ways to peers, and what waits where there is none.

Guarantee: a way is used for a peer when it leads to where that peer was called, or once the shell said
that it belongs to the peer. At most `ways_max` are in use; the one idle for longest gives way, by an
agreement of both ends that loses no frame, so that neither shell is told of a loss and makes a new
connection because of it. What waits for a peer is bounded in frames and bytes; what came first is kept,
since the link takes messages in order.

The caller owes: `opened`, `arrived`, `left` and `closed` come from the event loop, never from within a
call of the shell.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.transports.contract import Origin, Shell
from p2pdp.wire.padding import FRAME_SIZES

WAYS_MAX: Final = 512
QUEUE_FRAMES_MAX: Final = 4096
QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
CLOSE_S: Final = 2.0
LEAVE_S: Final = 2.0
STRANGERS_MAX: Final = 256
STRANGER_FRAME_BYTES_MAX: Final = FRAME_SIZES[5]


class FrameQueue:
    """Frames in order, bounded in number and bytes."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    def add(self, frame: bytes) -> bool:
        """Whether there was room."""
        if len(self._frames) >= QUEUE_FRAMES_MAX or self._bytes + len(frame) > QUEUE_BYTES_MAX:
            return False
        self._frames.append(frame)
        self._bytes += len(frame)
        return True

    def take(self) -> bytes:
        frame = self._frames.popleft()
        self._bytes -= len(frame)
        return frame

    def __len__(self) -> int:
        return len(self._frames)


class Way(ABC):
    """One connection, seen from one end."""

    peer: Peer | None = None  # who is at the other end; None for a stranger, who called and proved nothing yet
    heard: bool = False  # whether anything came of it, so that the next one need not wait

    @abstractmethod
    def write(self, frame: bytes) -> None: ...

    @abstractmethod
    def proved(self) -> None:
        """It is no stranger's any more."""

    @abstractmethod
    def leave(self) -> None:
        """Agrees with the other end to close, and takes what was under way until then."""

    @abstractmethod
    def finish(self) -> None:
        """Closes when what was written has left."""

    @abstractmethod
    def drop(self) -> None:
        """Closes at once."""


class Ways(ABC):
    """A transport but for how a peer is reached."""

    def __init__(self, shell: Shell, ways_max: int) -> None:
        if ways_max < 1:
            raise ValueError("a transport needs at least one way")
        self._shell = shell
        self._ways_max = ways_max
        self._alive: set[Way] = set()
        self.strangers: dict[Origin, Way] = {}
        self._in_use: OrderedDict[Way, None] = OrderedDict()  # the one idle for longest comes first
        self._to: dict[Peer, Way] = {}
        self._queues: dict[Peer, FrameQueue] = {}
        self._lost: set[Peer] = set()
        self._closing = False
        self._ended = asyncio.Event()

    @abstractmethod
    def _reach(self, peer: Peer) -> None:
        """Makes a way to a peer for whom frames wait, now or later."""

    @abstractmethod
    async def _give_up(self) -> None:
        """Stops trying to reach anybody, and being reached."""

    # What the shell calls

    def send(self, peer: Peer, frame: bytes) -> None:
        way = self._to.get(peer)
        if way is not None:
            self._in_use.move_to_end(way)
            way.write(frame)
        elif not self._closing:
            queue = self._queues.get(peer)
            if queue is None:
                queue = self._queues[peer] = FrameQueue()
            queue.add(frame)
            self._reach(peer)

    def answer(self, origin: Origin, frame: bytes) -> None:
        if isinstance(origin, Way):
            origin.write(frame)

    def belongs(self, origin: Origin, peer: Peer) -> None:
        way = self.strangers.pop(origin, None)
        if way is None:
            return
        way.peer = peer
        way.proved()
        self._add(peer, way, instead=False)

    async def close(self) -> None:
        self._closing = True
        self._queues.clear()
        await self._give_up()
        for way in list(self._alive):
            way.finish()
        if self._alive:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await self._ended.wait()
            except TimeoutError:  # somebody does not read
                for way in list(self._alive):
                    way.drop()
                await self._ended.wait()

    # What connections call

    def opened(self, way: Way) -> None:
        self._alive.add(way)
        if self._closing:
            way.drop()
        elif way.peer is None:
            self.strangers[way] = way
        else:
            self._add(way.peer, way, instead=True)

    def arrived(self, way: Way, frame: bytes) -> None:
        if not self._closing:
            if way in self._in_use:
                self._in_use.move_to_end(way)
            self._shell.arrived(way, frame)

    def left(self, way: Way) -> bool:
        """The way is not to be used any more; nothing is lost. Whether it was the one to its peer."""
        self._in_use.pop(way, None)
        if way.peer is None or self._to.get(way.peer) is not way:
            return False
        del self._to[way.peer]
        return True

    def closed(self, way: Way) -> None:
        self._alive.discard(way)
        self.strangers.pop(way, None)
        if self.left(way) and not self._closing:
            assert way.peer is not None
            self._lost.add(way.peer)
            self._shell.lost(way.peer)
        if self._closing and not self._alive:
            self._ended.set()

    def _add(self, peer: Peer, way: Way, *, instead: bool) -> None:
        """Takes a way into use; for what is sent, if there is no other or it is to go instead."""
        self._in_use[way] = None
        if instead or peer not in self._to:
            self._to[peer] = way
            queue = self._queues.pop(peer, None)
            while queue:
                way.write(queue.take())
            if peer in self._lost:
                self._lost.discard(peer)
                asyncio.get_running_loop().call_soon(self._tell_connected, peer)  # the shell may be calling us
        if len(self._in_use) > self._ways_max:
            idle = next(iter(self._in_use))
            self.left(idle)
            idle.leave()

    def _tell_connected(self, peer: Peer) -> None:
        if not self._closing:
            self._shell.connected(peer)
