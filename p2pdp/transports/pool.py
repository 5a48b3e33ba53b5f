"""Connections of a transport to its peers: which one is used, what waits for a peer without one, and dialling.

Guarantee: a connection is used for a peer when it leads to where that peer was called, or once the shell said that it
belongs to the peer. At most `connections_max` are in use; the one idle for longest is closed by an agreement of both
ends that loses no frame, so that no shell hears of a loss and makes a new connection because of it. What waits for a
peer is bounded in frames and bytes; what came first is kept, since the link takes messages in order.

A pool that dials makes one attempt a peer at a time. One that failed, or whose connection brought nothing, is followed
by a wait that doubles up to `DIAL_WAIT_MAX_S`; attempts go on as long as frames are waiting.

The caller owes: `opened`, `arrived`, `left` and `closed` come from the event loop, never from within a call of the
shell. `where` returns the place of a peer, or None while it is not known, and does not raise.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from p2pdp.core.ids import Peer
from p2pdp.transports.contract import Origin, Shell

CONNECTIONS_MAX: Final = 512
QUEUE_FRAMES_MAX: Final = 4096
QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
CLOSE_S: Final = 2.0
LEAVE_S: Final = 2.0
DIAL_WAIT_S: Final = 0.02
DIAL_WAIT_MAX_S: Final = 2.0
STRANGERS_MAX: Final = 256
STRANGER_FRAME_BYTES_MAX: Final = 256 * 1024

Place = TypeVar("Place")


class FrameQueue:
    """Frames in order, bounded in number and bytes."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    def add(self, frame: bytes) -> bool:
        """Add a frame if there is room; return whether there was."""
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


class Connection(ABC):
    """One connection, seen from one end."""

    peer: Peer | None = None  # who is at the other end; None for a stranger, who called and proved nothing yet
    heard: bool = False  # whether anything came of it, so that the next one need not wait

    @abstractmethod
    def write(self, frame: bytes) -> None: ...

    def write_together(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self.write(frame)

    @abstractmethod
    def proved(self) -> None:
        """Take note that the peer proved to be there: it is no stranger any more."""

    @abstractmethod
    def leave(self) -> None:
        """Agree with the other end to close, and take what is under way until then."""

    @abstractmethod
    def finish(self) -> None:
        """Close when what was written has left."""

    @abstractmethod
    def drop(self) -> None:
        """Close at once."""


class ConnectionPool(ABC):
    """A transport except for how it reaches a peer."""

    def __init__(self, shell: Shell, connections_max: int) -> None:
        if connections_max < 1:
            raise ValueError("a transport needs at least one connection")
        self._shell = shell
        self._connections_max = connections_max
        self._alive: set[Connection] = set()
        self.strangers: dict[Origin, Connection] = {}
        self._in_use: OrderedDict[Connection, None] = OrderedDict()  # the one idle for longest comes first
        self._to: dict[Peer, Connection] = {}
        self._queues: dict[Peer, FrameQueue] = {}
        self._lost: set[Peer] = set()
        self._closing = False
        self._ended = asyncio.Event()

    @abstractmethod
    def _reach(self, peer: Peer) -> None:
        """Make a connection to a peer for whom frames wait, now or later."""

    @abstractmethod
    async def _give_up(self) -> None:
        """Stop reaching peers and being reached."""

    # What the shell calls

    def send(self, peer: Peer, frame: bytes) -> None:
        connection = self._to.get(peer)
        if connection is not None:
            self._in_use.move_to_end(connection)
            connection.write(frame)
        elif not self._closing:
            queue = self._queues.get(peer)
            if queue is None:
                queue = self._queues[peer] = FrameQueue()
            queue.add(frame)
            self._reach(peer)

    def send_together(self, peer: Peer, frames: Sequence[bytes]) -> None:
        connection = self._to.get(peer)
        if connection is None:
            for frame in frames:
                self.send(peer, frame)
        else:
            self._in_use.move_to_end(connection)
            connection.write_together(frames)

    def answer(self, origin: Origin, frame: bytes) -> None:
        if isinstance(origin, Connection):
            origin.write(frame)

    def belongs(self, origin: Origin, peer: Peer) -> None:
        connection = self.strangers.pop(origin, None)
        if connection is None:
            return
        connection.peer = peer
        connection.proved()
        self._add(peer, connection, instead=False)

    async def close(self) -> None:
        self._closing = True
        self._queues.clear()
        await self._give_up()
        for connection in list(self._alive):
            connection.finish()
        if self._alive:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await self._ended.wait()
            except TimeoutError:  # somebody does not read
                for connection in list(self._alive):
                    connection.drop()
                await self._ended.wait()

    # What connections call

    def opened(self, connection: Connection) -> None:
        self._alive.add(connection)
        if self._closing:
            connection.drop()
        elif connection.peer is None:
            self.strangers[connection] = connection
        else:
            self._add(connection.peer, connection, instead=True)

    def arrived(self, connection: Connection, frame: bytes) -> None:
        if not self._closing:
            if connection in self._in_use:
                self._in_use.move_to_end(connection)
            self._shell.arrived(connection, frame)

    def left(self, connection: Connection) -> bool:
        """Use a connection no more, from which nothing is lost; return whether it was the one to its peer."""
        self._in_use.pop(connection, None)
        if connection.peer is None or self._to.get(connection.peer) is not connection:
            return False
        del self._to[connection.peer]
        return True

    def closed(self, connection: Connection) -> None:
        self._alive.discard(connection)
        self.strangers.pop(connection, None)
        if self.left(connection) and not self._closing:
            assert connection.peer is not None
            self._lost.add(connection.peer)
            self._shell.lost(connection.peer)
        if self._closing and not self._alive:
            self._ended.set()

    def _add(self, peer: Peer, connection: Connection, *, instead: bool) -> None:
        """Take a connection into use; send over it if there is no other, or `instead` of the other."""
        self._in_use[connection] = None
        if instead or peer not in self._to:
            self._to[peer] = connection
            queue = self._queues.pop(peer, None)
            while queue:
                connection.write(queue.take())
            if peer in self._lost:
                self._lost.discard(peer)
                asyncio.get_running_loop().call_soon(self._tell_connected, peer)  # the shell may be calling us
        if len(self._in_use) > self._connections_max:
            idle = next(iter(self._in_use))
            self.left(idle)
            idle.leave()

    def _tell_connected(self, peer: Peer) -> None:
        if not self._closing:
            self._shell.connected(peer)


class DiallingPool(ConnectionPool, Generic[Place]):
    def __init__(self, shell: Shell, where: Callable[[Peer], Place | None], connections_max: int) -> None:
        super().__init__(shell, connections_max)
        self._where = where
        self._dials: dict[Peer, asyncio.Task[None]] = {}
        self._waits_s: dict[Peer, float] = {}  # before the next dial, where the last one came to nothing

    @abstractmethod
    async def _call(self, peer: Peer, place: Place) -> None:
        """Make one attempt, and call `opened` if it succeeds."""

    def closed(self, connection: Connection) -> None:
        if connection.peer is not None and connection.heard:
            self._waits_s.pop(connection.peer, None)
        super().closed(connection)

    def _reach(self, peer: Peer) -> None:
        if peer not in self._dials:
            self._dials[peer] = asyncio.get_running_loop().create_task(self._dial(peer), name=f"dial {peer}")

    async def _give_up(self) -> None:
        dials = list(self._dials.values())
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    async def _dial(self, peer: Peer) -> None:
        """Dial until no frame waits: a connection takes them along when it opens, whoever opened it."""
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
