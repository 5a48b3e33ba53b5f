"""What only a stream can get wrong: strangers, cut and slow streams, addresses, ends that do not read."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from p2pdp.transports.pool import DIAL_WAIT_S, Connection
from p2pdp.transports.tcp import transport as tcp
from p2pdp.transports.tcp.transport import LEAVE, TcpTransport
from p2pdp.wire.frames import prefix
from p2pdp.wire.padding import FRAME_BYTES_MAX, FRAME_SIZES
from tests.support.transport_worlds import LOOPS, Node, Story, TcpWorld, live, loopback, play

if TYPE_CHECKING:
    import pytest

story = live(TcpTransport)

FROM_ONE = bytes((1, 1)) + b"hello".ljust(254, b"\x07")
FROM_THREE = bytes((1, 3)) + b"hello".ljust(254, b"\x07")


def called(peer: int) -> bytes:
    return struct.pack(">i", peer)


def told_both(made: Story) -> None:
    """For stories that need something of their test."""
    for loop in LOOPS:
        play(made, loop, TcpTransport)


class Stranger:
    """A bare connection to a node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @staticmethod
    async def calls(world: TcpWorld, peer: int, data: bytes, origin: str = "127.0.0.1") -> Stranger:
        stranger = Stranger(*await asyncio.open_connection(*world.addresses[peer], local_addr=(origin, 0)))
        stranger.writer.write(data)
        return stranger

    async def is_dropped(self) -> None:
        with suppress(ConnectionError):
            assert await self.reader.read() == b""
        await self.hangs_up()

    async def hangs_up(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def a_pair(world: TcpWorld) -> tuple[Node, Node]:
    """Two nodes that can be called, and a way between them."""
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, FROM_ONE)
    await two.until_frames(FROM_ONE)
    return one, two


async def still_works(one: Node, two: Node) -> None:
    before = len(two.frames)
    one.send(2, FROM_ONE)
    await two.until(lambda: len(two.frames) > before)
    assert two.frames[-1] == FROM_ONE
    assert one.told == two.told == []


@story
async def test_a_stranger_who_sends_garbage_loses_its_own_connection_only(world: TcpWorld) -> None:
    one, two = await a_pair(world)
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        called(7) + prefix(FROM_THREE),  # nobody of that number is here
        called(-2) + prefix(FROM_THREE),
        called(2) + bytes(4),
        called(2) + struct.pack(">I", 5),  # shorter than any frame
        called(2) + struct.pack(">I", FRAME_BYTES_MAX + 1),
        called(2) + b"\xff" * 100,
        called(2) + bytes((0, 0, 0, 1)) + bytes(500),
    ):
        await (await Stranger.calls(world, 2, garbage)).is_dropped()
    await still_works(one, two)
    assert two.frames == [FROM_ONE] * 2


@story
async def test_a_stream_that_is_cut_delivers_whole_frames_only(world: TcpWorld) -> None:
    one, two = await a_pair(world)
    whole = called(2) + prefix(FROM_THREE) + prefix(FROM_THREE)
    for cut in (0, 1, 3, 4, 6, 8, 9, 200, 263):
        await (await Stranger.calls(world, 2, whole[:cut])).hangs_up()
    assert two.frames == [FROM_ONE]
    last = await Stranger.calls(world, 2, whole[:-1])
    await two.until(lambda: len(two.frames) > 1)
    await last.hangs_up()
    await two.until(lambda: ("lost", 3) in two.told)
    assert two.frames == [FROM_ONE, FROM_THREE]
    two.told.clear()
    await still_works(one, two)


@story
async def test_a_stream_may_come_byte_by_byte(world: TcpWorld) -> None:
    two = await world.listening(2)
    stranger = await Stranger.calls(world, 2, b"")
    stranger.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in called(2) + prefix(FROM_THREE) * 2:
        stranger.writer.write(bytes((byte,)))
        await stranger.writer.drain()
        await asyncio.sleep(0)
    await two.until_frames(FROM_THREE, FROM_THREE)
    await stranger.hangs_up()


@story
async def test_a_stranger_sends_small_frames_only(world: TcpWorld) -> None:
    one, two = await a_pair(world)
    two.react = lambda _origin, _frame: None
    small = b"\x01\x03".ljust(tcp.STRANGER_FRAME_BYTES_MAX, b"\x07")
    for large in (prefix(small + b"\x07"), prefix(bytes(FRAME_BYTES_MAX))[: 2 * len(small)]):
        stranger = await Stranger.calls(world, 2, called(2) + prefix(small) + large)
        await stranger.is_dropped()
    assert two.frames == [FROM_ONE, small, small]
    await still_works(one, two)


@story
async def test_who_proved_itself_may_send_large_frames_in_the_same_breath(world: TcpWorld) -> None:
    two = await world.listening(2)
    large = b"\x01\x03".ljust(FRAME_SIZES[-2], b"\x07")
    stranger = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE) + prefix(large))
    await two.until_frames(FROM_THREE, large)
    await stranger.hangs_up()


@story
async def test_a_peer_that_begins_with_a_large_frame_gets_through_after_a_hello(world: TcpWorld) -> None:
    one, two = world.node(1), await world.listening(2)
    large = b"\x01\x01".ljust(FRAME_SIZES[-2], b"\x07")
    lost = one.lost

    def say_hello(peer: int) -> None:
        lost(peer)
        one.send(peer, FROM_ONE)
        one.send(peer, large)

    one.lost = say_hello  # type: ignore[method-assign]
    one.send(2, large)
    await two.until_frames(FROM_ONE, large)
    assert one.told[0] == ("lost", 2)


def test_whom_a_stranger_calls_has_to_be_said_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "CALL_S", 0.01)

    async def calls(world: TcpWorld) -> None:
        one, two = await a_pair(world)
        for said in (b"", called(2)[:3]):
            await (await Stranger.calls(world, 2, said)).is_dropped()
        stranger = await said_in_time(world, two)
        await (await Stranger.calls(world, 2, b"")).is_dropped()  # a later one's time is up
        stranger.writer.write(prefix(FROM_THREE))  # but not that of one who has said it
        await two.until(lambda: len(two.frames) == 3)
        await stranger.hangs_up()
        await two.until_told(("lost", 3))
        two.told.clear()
        await still_works(one, two)

    told_both(calls)


async def said_in_time(world: TcpWorld, two: Node) -> Stranger:
    """The first one that is heard: where this process stands still in the midst of a call, its time is up."""
    while True:
        stranger = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE))
        heard = asyncio.ensure_future(two.until(lambda: len(two.frames) == 2))
        ends = heard, asyncio.ensure_future(stranger.reader.read())
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for one in ends:
            one.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        if len(two.frames) == 2:
            return stranger
        await stranger.is_dropped()


@story
async def test_few_strangers_are_there_at_once_and_the_first_goes(world: TcpWorld) -> None:
    two, one = world.node(2), world.node(1)
    await world.listen(two, strangers_max=3)
    listener = world.listeners[2]
    two.believe()
    one.send(2, FROM_ONE)  # a peer, who is no stranger after this
    await two.until_frames(FROM_ONE)
    two.react = lambda _origin, _frame: None
    strangers = []
    for number in range(8):
        strangers.append(await Stranger.calls(world, 2, called(2)[: 4 if number % 2 else 2] + b""))
        if number % 2:
            strangers[-1].writer.write(prefix(FROM_THREE))
            await two.until_count(2 + number // 2)
    for gone in strangers[:5]:
        await gone.is_dropped()
    assert len(listener.strangers) == 3
    last = two.origins[-1]
    two.answer(last, FROM_ONE)
    assert await strangers[-1].reader.readexactly(len(prefix(FROM_ONE))) == prefix(FROM_ONE)
    await still_works(one, two)
    listener.close()
    await strangers[6].is_dropped()  # it had not said yet whom it calls
    two.answer(last, FROM_ONE)
    assert await strangers[-1].reader.readexactly(len(prefix(FROM_ONE))) == prefix(FROM_ONE)
    await two.transport.close()
    for left in (strangers[5], strangers[7]):
        await left.is_dropped()


@story
async def test_a_flood_of_strangers_from_one_address_displaces_none_from_others(world: TcpWorld) -> None:
    two = world.node(2)
    await world.listen(two, strangers_max=3)
    few = [await Stranger.calls(world, 2, called(2) + prefix(FROM_ONE), f"127.0.0.{host}") for host in (2, 3)]
    await two.until_count(2)
    many = [await Stranger.calls(world, 2, called(2)) for _ in range(30)]
    for gone in many[:-1]:
        await gone.is_dropped()
    for number, still in enumerate(few):
        two.answer(two.origins[number], FROM_THREE)
        assert await still.reader.readexactly(len(prefix(FROM_THREE))) == prefix(FROM_THREE)
    for stranger in (*few, many[-1]):
        await stranger.hangs_up()


@story
async def test_a_connection_that_brings_much_lets_others_have_their_turn(world: TcpWorld) -> None:
    one, two = await a_pair(world)
    two.react = lambda _origin, _frame: None
    flooder = await Stranger.calls(world, 2, called(2))
    flooder.writer.write(prefix(FROM_THREE) * 20_000)
    await two.until(lambda: len(two.frames) > 1)
    for _ in range(5):
        before = len(two.frames)
        one.send(2, FROM_ONE)
        await two.until(lambda: FROM_ONE in two.frames[before:])  # noqa: B023
        assert two.frames.index(FROM_ONE, before) <= before + 5 * tcp.FRAMES_A_TURN
    await flooder.hangs_up()
    await two.until_count(20_000 + 6)
    assert two.frames.count(FROM_THREE) == 20_000, "of what arrived nothing is lost"


@story
async def test_what_a_connection_brought_before_it_broke_is_taken(world: TcpWorld) -> None:
    _, two = await a_pair(world)
    count = 10 * tcp.FRAMES_A_TURN + 1
    flooder = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE) * count)
    await two.until(lambda: len(two.frames) > 1)
    await flooder.hangs_up()
    await two.until_count(count + 1)
    assert two.frames == [FROM_ONE, *count * [FROM_THREE]]


@story
async def test_strangers_never_displace_a_peer(world: TcpWorld) -> None:
    one, two = world.node(1), world.node(2, connections_max=1)
    await world.listen(two)
    two.believe()
    one.send(2, FROM_ONE)
    await two.until_frames(FROM_ONE)
    two.react = lambda _origin, _frame: None
    strangers = [await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE)) for _ in range(20)]
    await two.until(lambda: len(two.frames) == 21)
    await still_works(one, two)
    assert len(set(two.origins[:1] + two.origins[-1:])) == 1
    for stranger in strangers:
        await stranger.hangs_up()


@story
async def test_a_stranger_who_does_not_read_is_dropped(world: TcpWorld) -> None:
    two = world.node(2)
    await world.listen(two)
    stranger = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE))
    stranger.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await two.until_frames(FROM_THREE)
    transport = two.transport
    assert isinstance(transport, TcpTransport)
    written = 0
    while transport._alive:
        two.answer(two.origins[0], bytes(65536))
        written += 65536
        assert written < 256 * 1024 * 1024
        await asyncio.sleep(0)
    stranger.writer.transport.abort()


def test_an_end_that_does_not_read_costs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "BUFFER_BYTES_MAX", 1024 * 1024)

    async def floods(world: TcpWorld) -> None:
        one = world.node(1)
        deaf = loopback()
        deaf.listen()
        world.addresses[2] = deaf.getsockname()
        tracemalloc.start()
        try:
            while not one.told:
                one.send(2, bytes(65536))
                assert tracemalloc.get_traced_memory()[0] < 80 * 1024 * 1024
                await asyncio.sleep(0)
        finally:
            tracemalloc.stop()
        assert one.told == [("lost", 2)]
        deaf.close()

    told_both(floods)


def test_closing_does_not_wait_for_an_end_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2pdp.transports.pool.CLOSE_S", 0.01)

    async def closes(world: TcpWorld) -> None:
        one = world.node(1)
        deaf = loopback()
        deaf.listen()
        deaf.setblocking(False)
        world.addresses[2] = deaf.getsockname()
        one.send(2, FROM_ONE)
        transport = one.transport
        assert isinstance(transport, TcpTransport)
        loop = asyncio.get_running_loop()
        ear, _ = await loop.sock_accept(deaf)
        assert await loop.sock_recv(ear, 4) == called(2)
        await asyncio.gather(*transport._dials.values())
        for _ in range(300):
            one.send(2, bytes(65536))
        await transport.close()
        assert not transport._alive
        ear.close()
        deaf.close()

    told_both(closes)


@story
async def test_closing_in_the_moment_when_a_dial_succeeds(world: TcpWorld) -> None:
    for _ in range(20):
        one, two = world.node(1), world.node(2)
        await world.listen(two)
        transport = one.transport
        assert isinstance(transport, TcpTransport)
        opened, at_once = transport.opened, asyncio.Event()

        def tell_and_open(
            connection: Connection, opened: Callable[[Connection], None] = opened, at_once: asyncio.Event = at_once
        ) -> None:
            opened(connection)
            at_once.set()

        transport.opened = tell_and_open  # type: ignore[method-assign]
        closing = asyncio.create_task(close_after(at_once, transport))
        one.send(2, FROM_ONE)
        await closing
        assert not transport._alive
        await world.stop(two)


async def close_after(event: asyncio.Event, transport: TcpTransport) -> None:
    await event.wait()
    await transport.close()


def test_an_end_that_does_not_leave_when_asked_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LEAVE_S", 0.01)

    async def stays(world: TcpWorld) -> None:
        one, three = world.node(1, connections_max=1), await world.listening(3)
        came: asyncio.Queue[Stranger] = asyncio.Queue()
        server = await asyncio.start_server(lambda *ends: came.put_nowait(Stranger(*ends)), "127.0.0.1", 0)
        world.addresses[2] = server.sockets[0].getsockname()
        one.send(2, FROM_ONE)
        other = await came.get()
        one.send(3, FROM_ONE)
        expected = called(2) + prefix(FROM_ONE) + prefix(LEAVE)
        assert await other.reader.readexactly(len(expected)) == expected
        await other.is_dropped()
        await three.until_frames(FROM_ONE)
        assert one.told == []
        assert 2 not in one.transport._waits_s  # type: ignore[attr-defined]
        server.close()

    told_both(stays)


@story
async def test_who_accepts_and_hangs_up_is_not_dialled_without_a_pause(world: TcpWorld) -> None:
    """Its shell sends at each loss; without waits this would be a loop as fast as the network."""
    one = world.node(1)
    waits: list[float] = []
    transport = one.transport
    assert isinstance(transport, TcpTransport)

    def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waits.append(transport._waits_s[2])
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    world.addresses[2] = server.sockets[0].getsockname()
    lost = one.lost

    def say_hello(peer: int) -> None:
        lost(peer)
        one.send(peer, FROM_ONE)

    one.lost = say_hello  # type: ignore[method-assign]
    one.send(2, FROM_ONE)
    await one.until(lambda: len(one.told) >= 7)
    server.close()
    assert waits[:4] == [times * DIAL_WAIT_S for times in (1, 2, 4, 8)]


@story
async def test_waits_begin_anew_once_a_connection_brought_something(world: TcpWorld) -> None:
    one, two = await a_pair(world)
    transport = one.transport
    assert isinstance(transport, TcpTransport)
    transport._waits_s[2] = 1000.0
    two.send(1, FROM_ONE)
    await one.until_frames(FROM_ONE)
    world.break_connections(one)
    await one.until_told(("lost", 2))
    one.send(2, FROM_ONE)
    await two.until_frames(FROM_ONE, FROM_ONE)


@story
async def test_what_is_no_address_is_tried_until_it_is_one(world: TcpWorld) -> None:
    one, two = world.node(1), world.node(2)
    await world.listen(two)
    right = world.addresses.pop(2)
    one.send(2, FROM_ONE)
    transport = one.transport
    assert isinstance(transport, TcpTransport)
    wrong: list[tuple[str, int]] = [("127.0.0.1", 1 << 20), ("127.0.0.1", -1), ("\x00", 5), ("a" * 70, 5)]
    for address in wrong:
        await transport._call(2, address)
        assert not transport._alive
    world.addresses[2] = right
    await two.until_frames(FROM_ONE)


def test_a_dial_that_hears_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "DIAL_S", 0.01)

    async def dials(world: TcpWorld) -> None:
        one = world.node(1)
        full = loopback()
        full.listen(0)
        fillers = []
        for _ in range(3):  # from now on the kernel answers nobody
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
            fillers.append(filler)
        world.addresses[2] = full.getsockname()
        transport = one.transport
        assert isinstance(transport, TcpTransport)
        await transport._call(2, world.addresses[2])
        assert not transport._alive
        for opened in (*fillers, full):
            opened.close()

    told_both(dials)


@story
async def test_nothing_crosses_the_wire_but_whom_it_is_for_and_frames(world: TcpWorld) -> None:
    """An observer sees the sizes of frames; content changes nothing, and adds nothing."""
    for fill in (b"\x00", b"\xff"):
        one, came = world.node(1), asyncio.Queue[Stranger]()
        server = await asyncio.start_server(lambda *ends, came=came: came.put_nowait(Stranger(*ends)), "127.0.0.1", 0)
        world.addresses[5] = server.sockets[0].getsockname()
        frames = [fill * size for size in FRAME_SIZES[:6]]
        for frame in frames:
            one.send(5, frame)
        expected = called(5) + b"".join(prefix(frame) for frame in frames)
        observer = await came.get()
        assert await observer.reader.readexactly(len(expected)) == expected
        await one.transport.close()
        await observer.is_dropped()
        server.close()
    assert len(LEAVE) in FRAME_SIZES


@story
async def test_callers_after_closing_are_dropped(world: TcpWorld) -> None:
    two = await world.listening(2)
    listener = world.listeners[2]
    await two.transport.close()  # while it still listens
    stranger = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE))
    await stranger.is_dropped()
    listener.close()
    listener.close()
    assert two.frames == []


def test_connections_leave_nothing_behind() -> None:
    async def comes_and_goes(world: TcpWorld) -> None:
        two = await world.listening(2)
        transport = two.transport
        assert isinstance(transport, TcpTransport)
        for number in range(20):
            one = world.node(3)
            one.send(2, FROM_THREE)
            await two.until_count(number + 1)
            await world.stop(one)
            await two.until(lambda: ("lost", 3) in two.told)
            two.told.clear()
        two.react = lambda _origin, _frame: None
        stranger = await Stranger.calls(world, 2, called(2) + prefix(FROM_THREE))
        await two.until_count(21)
        await stranger.hangs_up()
        one = await world.listening(1)
        one.send(2, FROM_ONE)
        await two.until_count(22)
        await world.stop(one)
        three = await world.listening(4)
        two.believe()
        three.send(2, bytes((1, 4)).ljust(256, b"\x07"))
        await two.until_count(23)
        await world.stop(three)
        await two.until_told(("lost", 4))
        gc.collect()
        for kept in (transport._alive, transport._in_use, transport.strangers, transport._to):
            assert not kept
        assert not world.listeners[2].strangers

    told_both(comes_and_goes)
