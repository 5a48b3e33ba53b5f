"""Frames over TCP: connections are dialled when first needed and then used in both directions.

A connection begins with the number of the peer that is dialled, so that several peers can share a port.
`LEAVE`, of the smallest size that frames have, is the last thing an end sends that closes an idle
connection; the other end closes it then, and whatever it wrote before still arrives.

Guarantee: at most `connections_max` connections are in use, and one that was asked to leave is gone within
`LEAVE_S`. A stream that is out of step is closed, and an end that does not read what is sent to it loses
its connection.

Who called and proved nothing yet is a stranger: it has to say within `CALL_S` whom it calls, its frames
are small, no more than `strangers_max` of them are there (of the address with most the first goes), and they never
displace a peer.
Reading is fair: a connection that brings more than `FRAMES_A_TURN` at once is not read on before every other one had
its turn, so its other end is slowed down and nobody else.

A peer whose very first frame is larger loses the connection by it, and is known once it dials again, since
a link says hello after a loss.

Addresses that `where` tells are hints: whoever answers there still has to prove who it is.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from struct import Struct
from typing import Final, cast

from p2pdp.core.addresses import Address
from p2pdp.core.admission import Admission, counted_address
from p2pdp.core.ids import Peer
from p2pdp.transports.contract import Shell
from p2pdp.transports.pool import (
    CONNECTIONS_MAX,
    LEAVE_S,
    QUEUE_BYTES_MAX,
    STRANGER_FRAME_BYTES_MAX,
    STRANGERS_MAX,
    Connection,
    ConnectionPool,
    DiallingPool,
)
from p2pdp.transports.tcp.switchboard import BACKLOG, Switchboard
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import FrameReader, length_of, prefix
from p2pdp.wire.padding import FRAME_SIZES

DIAL_S: Final = 5.0
SILENCE_S: Final = 10.0  # what was sent and not acknowledged by the other machine for so long: the connection is dead
CALL_S: Final = 5.0
FRAMES_A_TURN: Final = 64
LEAVE: Final = bytes(FRAME_SIZES[0])
BUFFER_BYTES_MAX: Final = QUEUE_BYTES_MAX
STRANGER_BUFFER_BYTES_MAX: Final = 1024 * 1024

_LARGE_BYTES: Final = 16 * 1024  # from here on a frame is not copied to put its length before it
_CALLED: Final = Struct(">i")  # whom a connection is for


class _TcpConnection(asyncio.Protocol, Connection):
    """One TCP connection: one that we dialled has a peer and an owner, one that came has a listener."""

    def __init__(self, owner: ConnectionPool | None, peer: Peer | None, listener: TcpListener | None = None) -> None:
        self.peer = peer
        self.heard = False
        self._stream: asyncio.Transport | None = None
        self.owner = owner
        self._listener = listener
        self._called = b""
        self._reader = FrameReader()
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: list[bytes] = []  # frames for the next turns of the loop, last first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._stream = cast("asyncio.Transport", transport)
        _tune(transport.get_extra_info("socket"))
        if self.owner is not None:
            assert self.peer is not None
            self._stream.write(_CALLED.pack(self.peer))
            self.owner.opened(self)
        elif self._listener is not None:
            self._drop_after(CALL_S)
            self._listener.came(self, transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        owner = self.owner
        if owner is None:
            data = self._answer_call(data)
            owner = self.owner
        if owner is None:
            return
        frame = self._reader.whole(data)
        if frame is not None and frame != LEAVE and self.peer is not None and not self._unread:
            self.heard = True
            owner.arrived(self, frame)
        else:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except CodecError:
            self.drop()
            return
        if self._unread:  # what the loop had read already
            self._unread[:0] = reversed(frames)
        elif len(frames) > FRAMES_A_TURN and self._stream is not None:
            self._unread = frames[: FRAMES_A_TURN - 1 : -1]
            self._stream.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)
            self._take(frames[:FRAMES_A_TURN])
        else:
            self._take(frames)

    def _read_on(self) -> None:
        """Take what is left, some in each turn of the loop; read more only then."""
        some = self._unread[: -FRAMES_A_TURN - 1 : -1]
        del self._unread[-FRAMES_A_TURN:]
        if self._unread:
            asyncio.get_running_loop().call_soon(self._read_on)
        elif self._stream is not None:
            self._stream.resume_reading()
        self._take(some)

    def _take(self, frames: list[bytes]) -> None:
        for frame in frames:
            if self.owner is None:
                return
            if self.peer is None and len(frame) > STRANGER_FRAME_BYTES_MAX:
                self.drop()
                return
            self.heard = True
            if frame == LEAVE:
                self.owner.left(self)
                self.finish()
                return
            self.owner.arrived(self, frame)  # the shell may say meanwhile that this is a peer
        if self.peer is None and self._reader.pending_bytes > STRANGER_FRAME_BYTES_MAX:
            self.drop()

    def _answer_call(self, data: bytes) -> bytes:
        """Find out whom the call is for; return the bytes that follow."""
        self._called += data
        if len(self._called) < _CALLED.size or self._listener is None:
            return b""
        called, rest = self._called[: _CALLED.size], self._called[_CALLED.size :]
        self._called = b""
        self.owner = self._listener.find(_CALLED.unpack(called)[0])
        if self.owner is None:
            self.drop()
        else:
            self._cancel_deadline()
            self.owner.opened(self)
        return rest

    def connection_lost(self, exc: Exception | None) -> None:
        self._stream = None
        self._cancel_deadline()
        unread, self._unread = self._unread[::-1], []
        self._take(unread)
        if self._listener is not None:
            self._listener.strangers.discard(self)
        if self.owner is not None:
            self.owner.closed(self)

    def given_up(self) -> None:
        """Close a dial that was cancelled in the moment it succeeded: uvloop closes then and tells nobody."""
        if self._stream is not None:
            self.drop()
            self.connection_lost(None)

    def _drop_after(self, delay_s: float) -> None:
        self._cancel_deadline()
        self._deadline = asyncio.get_running_loop().call_later(delay_s, self.drop)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    # transports.pool.Connection

    def write(self, frame: bytes) -> None:
        if len(frame) < _LARGE_BYTES:
            self._write(prefix(frame))
        else:
            self._write(length_of(frame), frame)

    def _write(self, *pieces: bytes) -> None:
        stream = self._stream
        if stream is None or stream.is_closing():
            return
        bytes_max = STRANGER_BUFFER_BYTES_MAX if self.peer is None else BUFFER_BYTES_MAX
        if stream.get_write_buffer_size() > bytes_max:
            self.drop()
        elif len(pieces) == 1:
            stream.write(pieces[0])
        else:
            stream.writelines(pieces)

    def write_together(self, frames: Sequence[bytes]) -> None:
        if sum(map(len, frames)) < _LARGE_BYTES:
            self._write(b"".join(map(prefix, frames)))
        else:
            super().write_together(frames)

    def proved(self) -> None:
        if self._listener is not None:
            self._listener.strangers.discard(self)

    def leave(self) -> None:
        self.write(LEAVE)
        self.heard = True  # whatever came of it, the next dial need not wait
        self._drop_after(LEAVE_S)

    def finish(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def drop(self) -> None:
        if self._stream is not None:
            self._stream.abort()


def _tune(opened: socket.socket | None) -> None:
    """Let frames leave at once, and notice a cut cable in seconds instead of a quarter of an hour."""
    if opened is None or opened.family not in (socket.AF_INET, socket.AF_INET6):
        return
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_S * 1000))


class TcpListener:
    """A listening socket for one peer or several; `find` gives the transport of a peer that is called."""

    def __init__(self, find: Callable[[Peer], ConnectionPool | None], strangers_max: int = STRANGERS_MAX) -> None:
        self.find = find
        self.strangers: Admission[_TcpConnection] = Admission()
        self._strangers_max = strangers_max
        self._server: asyncio.Server | None = None
        self._closed = False

    async def listen(self, bound: socket.socket) -> None:
        self._server = await asyncio.get_running_loop().create_server(self.answer, sock=bound, backlog=BACKLOG)

    def answer(self) -> asyncio.Protocol:
        """Return what takes the next connection."""
        return _TcpConnection(None, None, self)

    def came(self, stranger: _TcpConnection, name: object) -> None:
        self.strangers.add(stranger, counted_address(name))
        if self._closed:
            stranger.drop()
        elif len(self.strangers) > self._strangers_max:
            first = self.strangers.first_to_go()
            assert first is not None
            self.strangers.discard(first)
            first.drop()

    def close(self) -> None:
        """Take no further callers; who called already is with the transport of the peer it called."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for stranger in self.strangers:
            if stranger.owner is None:
                stranger.drop()


class TcpTransport(DiallingPool[Address]):
    def __init__(
        self, shell: Shell, where: Callable[[Peer], Address | None], connections_max: int = CONNECTIONS_MAX
    ) -> None:
        super().__init__(shell, where, connections_max)

    async def _call(self, peer: Peer, place: Address) -> None:
        loop = asyncio.get_running_loop()
        await dialled(_TcpConnection(self, peer), lambda connection: loop.create_connection(lambda: connection, *place))


class SharedTransport(DiallingPool[int]):
    """The same over streams of a process that several users share; peers are at slots."""

    def __init__(
        self,
        shell: Shell,
        where: Callable[[Peer], int | None],
        board: Switchboard,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        super().__init__(shell, where, connections_max)
        self._board = board
        board.join(self)

    async def _call(self, peer: Peer, place: int) -> None:
        await dialled(_TcpConnection(self, peer), partial(self._board.call, place))

    async def close(self) -> None:
        await super().close()
        await self._board.leave(self)


Dial = Callable[[asyncio.Protocol], Awaitable[object]]


async def dialled(connection: _TcpConnection, dial: Dial) -> None:
    """Make one attempt to connect it."""
    made = False
    try:
        async with asyncio.timeout(DIAL_S):
            await dial(connection)
            made = True
    except (OSError, ValueError, OverflowError):  # nobody is there, or it is no address at all
        return
    finally:
        if not made:
            connection.given_up()
