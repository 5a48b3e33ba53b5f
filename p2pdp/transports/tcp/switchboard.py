"""Connections between the users of a local run that share processes: streams of bytes over few sockets.

A process of many users would run out of files, and spend its time on dialling, if each pair of users had a socket. So
it has one to each process that one of its users calls, its own included, and a stream in it takes the place of a
connection (`transport.py` does not see the difference). A record on the socket is a stream's number and what was
written. The first record of a number names the slot that is called, and one without bytes ends the stream. Only who
dialled the socket begins streams in it.

Guarantee: what is written to a stream arrives in order, and before its end. Where a socket breaks, all its streams do.
At most `RECORDS_A_TURN` records are taken from a socket before each other one had its turn, so what bootstrap asks
waits for no flood of others. A socket begins with a key that the launcher gave to the processes of this run, so nothing
is read from anybody else.

The caller owes: what a stream has to send is bounded by who writes to it (`get_write_buffer_size`), since one that is
not read by its protocol keeps what comes. What a stream that is dropped had written stays in the socket, which breaks
where too much waits in it.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable
from hmac import compare_digest
from struct import Struct
from typing import Any, Final, cast

from p2pdp.core.addresses import Address
from p2pdp.core.admission import Admission
from p2pdp.transports.pool import QUEUE_BYTES_MAX, STRANGERS_MAX
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import PREFIX_BYTES, FrameReader
from p2pdp.wire.padding import FRAME_BYTES_MAX

KEY_BYTES: Final = 32
BACKLOG: Final = 1024
CLOSE_S: Final = 2.0
PROVE_S: Final = 5.0  # for the key
RECORDS_A_TURN: Final = 1024  # with few, hosts are woken before all was read, and send again what was acknowledged

_HEAD: Final = Struct(">IQ")  # the length of what follows, and in that the number of a stream
_NUMBER: Final = Struct(">Q")
_SLOT: Final = Struct(">i")
_TRUNK_BYTES_MAX: Final = 4 * QUEUE_BYTES_MAX  # that wait in a socket: then it breaks, and with it all its streams
_RECORD_BYTES_MAX: Final = _NUMBER.size + PREFIX_BYTES + FRAME_BYTES_MAX

Answers = Callable[[], asyncio.Protocol]  # makes what takes a stream that came


class Stream(asyncio.Transport):
    """One end of a stream."""

    def __init__(self, trunk: _Trunk, number: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._trunk = trunk
        self._number = number
        self._protocol = protocol
        self._closing = False
        self._kept: list[bytes] | None = None  # what came while nobody reads
        self._unsent: deque[tuple[int, int]] = deque()  # where in the trunk something ends, and how much it is
        self._unsent_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing and data:
            self._trunk.write(self._number, bytes(data))
            self.get_write_buffer_size()
            self._unsent.append((self._trunk.written_bytes, len(data)))
            self._unsent_bytes += len(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)

    def get_write_buffer_size(self) -> int:
        """Return how much of what was written here has not left, counting what has left in part as a whole."""
        gone_bytes = self._trunk.written_bytes - self._trunk.waiting()
        while self._unsent and self._unsent[0][0] <= gone_bytes:
            self._unsent_bytes -= self._unsent.popleft()[1]
        return self._unsent_bytes

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._kept = [] if self._kept is None else self._kept

    def resume_reading(self) -> None:
        kept, self._kept = self._kept, None
        for data in kept or ():
            self.take(data)

    def close(self) -> None:
        if not self._closing:
            self._trunk.write(self._number, b"")
            self._end()

    def abort(self) -> None:
        self.close()

    # What the socket calls

    def take(self, data: bytes) -> None:
        if self._kept is not None:
            self._kept.append(data)
        elif not self._closing and data:
            self._protocol.data_received(data)
        else:
            self._end()

    def broken(self) -> None:
        """Take note of the end of the socket, behind what came over it."""
        self.resume_reading()
        self._end()

    def _end(self) -> None:
        if not self._closing:
            self._closing = True
            self._trunk.forget(self._number)
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)  # the shell may be calling us


class _Trunk(asyncio.Protocol):
    """A socket between two processes, seen from one end."""

    def __init__(self, board: Switchboard, *, dialled: bool) -> None:
        self._board = board
        self._dialled = dialled
        self._key: bytes | None = None if dialled else b""  # what came of it; None once it is known
        self._reader = FrameReader(_RECORD_BYTES_MAX)
        self._streams: dict[int, Stream] = {}
        self._unread: list[bytes] = []  # records for the next turns of the loop, last first
        self._number = 0  # of the newest stream
        self.socket: asyncio.Transport | None = None
        self.written_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket = cast("asyncio.Transport", transport)
        if not self._dialled:
            asyncio.get_running_loop().call_later(PROVE_S, self._drop_stranger)
        opened = transport.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._dialled:
            self.written_bytes = KEY_BYTES
            self.socket.write(self._board.key)
        self._board.opened(self, dialled=self._dialled)

    def data_received(self, data: bytes) -> None:
        if self._key is not None:
            self._key += data
            if len(self._key) < KEY_BYTES:
                return
            known, data = compare_digest(self._key[:KEY_BYTES], self._board.key), self._key[KEY_BYTES:]
            if not known:
                self.drop()
                return
            self._key = None
            self._board.proved(self)
        try:
            records = self._reader.feed(data)
        except CodecError:
            self.drop()
            return
        if self._unread:  # what the loop had read already
            self._unread[:0] = reversed(records)
        elif len(records) > RECORDS_A_TURN and self.socket is not None:
            self._unread = records[: RECORDS_A_TURN - 1 : -1]
            self.socket.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)
            self._take(records[:RECORDS_A_TURN])
        else:
            self._take(records)

    def _read_on(self) -> None:
        """Take what is left, some in each turn of the loop; read more only then."""
        some = self._unread[: -RECORDS_A_TURN - 1 : -1]
        del self._unread[-RECORDS_A_TURN:]
        if self._unread:
            asyncio.get_running_loop().call_soon(self._read_on)
        elif self.socket is not None:
            self.socket.resume_reading()
        self._take(some)

    def _take(self, records: list[bytes]) -> None:
        try:
            for record in records:
                self._take_one(record)
        except Exception:
            self.drop()  # what follows is lost, so all streams have to break
            raise

    def _take_one(self, record: bytes) -> None:
        (number,) = _NUMBER.unpack_from(record)
        stream = self._streams.get(number)
        if stream is not None:
            stream.take(record[_NUMBER.size :])
        elif number > self._number and not self._dialled:
            self._number = number
            self._called(number, record[_NUMBER.size :])

    def _called(self, number: int, slot: bytes) -> None:
        answers = self._board.answers(_SLOT.unpack(slot)[0]) if len(slot) == _SLOT.size else None
        if answers is None:
            self.write(number, b"")
        else:
            self._begin(number, answers())

    def call(self, slot: int, protocol: asyncio.Protocol) -> None:
        self._number += 1
        self.write(self._number, _SLOT.pack(slot))
        self._begin(self._number, protocol)

    def _begin(self, number: int, protocol: asyncio.Protocol) -> None:
        stream = self._streams[number] = Stream(self, number, protocol)
        protocol.connection_made(stream)

    def write(self, number: int, data: bytes) -> None:
        if self.socket is not None and not self.socket.is_closing():
            self.written_bytes += _HEAD.size + len(data)
            self.socket.write(_HEAD.pack(_NUMBER.size + len(data), number) + data)
            if self.socket.get_write_buffer_size() > _TRUNK_BYTES_MAX:  # the other process stands still
                self.drop()

    def waiting(self) -> int:
        return 0 if self.socket is None else self.socket.get_write_buffer_size()

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)

    def drop(self) -> None:
        if self.socket is not None:
            self.socket.abort()

    def _drop_stranger(self) -> None:
        if self._key is not None:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.socket = None
        self._board.closed(self)
        unread, self._unread = self._unread[::-1], []
        try:
            self._take(unread)
        finally:
            for stream in list(self._streams.values()):
                stream.broken()


class Switchboard:
    """The streams of one process. `place_of` tells where the process of a slot listens."""

    def __init__(
        self, key: bytes, bound: socket.socket, place_of: Callable[[int], Address], strangers_max: int = STRANGERS_MAX
    ) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key has {KEY_BYTES} bytes")
        self.key = key
        self._bound = bound
        self._place_of = place_of
        self._strangers_max = strangers_max
        self._server: asyncio.Server | None = None
        self._answers: dict[int, Answers] = {}
        self._dials: dict[Address, asyncio.Task[_Trunk]] = {}
        self._trunks: set[_Trunk] = set()
        self._strangers: Admission[_Trunk] = Admission()
        self._users: set[object] = set()
        self._ended = asyncio.Event()

    def join(self, user: object) -> None:
        """Stay open for this user until it leaves."""
        self._users.add(user)

    async def leave(self, user: object) -> None:
        """Close with the last user, after what was written has left."""
        if user not in self._users:
            return
        self._users.discard(user)
        if self._users:
            return
        if self._server is not None:
            self._server.close()
        self._bound.close()
        for dial in self._dials.values():
            dial.cancel()
        await asyncio.gather(*self._dials.values(), return_exceptions=True)
        for trunk in self._trunks:
            if trunk.socket is not None:
                trunk.socket.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                while self._trunks:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:  # somebody does not read
            for trunk in list(self._trunks):
                trunk.drop()

    async def listen(self, slot: int, answers: Answers) -> None:
        """Take calls for a slot from now on."""
        self._answers[slot] = answers
        if self._server is None:
            made = asyncio.get_running_loop().create_server(
                lambda: _Trunk(self, dialled=False), sock=self._bound, backlog=BACKLOG
            )
            self._server = await made

    def hang_up(self, slot: int) -> None:
        self._answers.pop(slot, None)

    def answers(self, slot: int) -> Answers | None:
        return self._answers.get(slot)

    async def call(self, slot: int, protocol: asyncio.Protocol) -> None:
        """Begin a stream to a slot; raise `OSError` where its process cannot be reached."""
        place = self._place_of(slot)
        dial = self._dials.get(place)
        if dial is None or (dial.done() and _trunk_of(dial) is None):
            dial = self._dials[place] = asyncio.get_running_loop().create_task(self._dial(place), name="trunk")
        (await asyncio.shield(dial)).call(slot, protocol)

    async def _dial(self, place: Address) -> _Trunk:
        _, trunk = await asyncio.get_running_loop().create_connection(lambda: _Trunk(self, dialled=True), *place)
        return trunk

    # What sockets call

    def opened(self, trunk: _Trunk, *, dialled: bool) -> None:
        self._trunks.add(trunk)
        if not dialled:
            self._strangers.add(trunk, "")
            if len(self._strangers) > self._strangers_max:
                first = self._strangers.first_to_go()
                assert first is not None
                self._strangers.discard(first)
                first.drop()

    def proved(self, trunk: _Trunk) -> None:
        self._strangers.discard(trunk)

    def closed(self, trunk: _Trunk) -> None:
        self._trunks.discard(trunk)
        self._strangers.discard(trunk)
        self._ended.set()


def _trunk_of(dial: asyncio.Task[_Trunk]) -> _Trunk | None:
    """Return what a dial led to, if it is of use."""
    if dial.cancelled() or dial.exception() is not None:
        return None
    trunk = dial.result()
    return None if trunk.socket is None or trunk.socket.is_closing() else trunk
