"""Streams over one socket: order, ends, bounds, strangers. What transports owe is in `tests/contracts`."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from p2pdp.core.addresses import Address
from p2pdp.transports.pool import STRANGERS_MAX
from p2pdp.transports.tcp import switchboard
from p2pdp.transports.tcp.switchboard import KEY_BYTES, Stream, Switchboard
from p2pdp.wire.frames import length_of

KEY = bytes(range(KEY_BYTES))
NEAR, FAR = 0, 10  # processes of ten slots each
SECONDS = 60


class End(asyncio.Protocol):
    """What a stream brought, piece by piece; None is its end."""

    def __init__(self) -> None:
        self.heard: list[bytes | None] = []
        self.news = asyncio.Event()
        self.stream: Stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Stream)
        self.stream = transport
        self.news.set()

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append(None)
        self.news.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self.news.clear()
            await self.news.wait()


class Boards:
    """Two processes; `ends` are those of streams that came to slots which listen."""

    def __init__(self) -> None:
        self.bound = {}
        for first in (NEAR, FAR):
            self.bound[first] = socket.socket()
            self.bound[first].bind(("127.0.0.1", 0))
        self.places = {first: Address(*bound.getsockname()) for first, bound in self.bound.items()}
        self.of = {first: Switchboard(KEY, bound, self.place_of) for first, bound in self.bound.items()}
        self.ends: dict[int, list[End]] = {}
        self.news = asyncio.Event()

    def place_of(self, slot: int) -> Address:
        return self.places[slot - slot % 10]

    async def listen(self, slot: int) -> None:
        def answers() -> End:
            self.ends.setdefault(slot, []).append(End())
            self.news.set()
            return self.ends[slot][-1]

        await self.of[slot - slot % 10].listen(slot, answers)

    async def call(self, first: int, slot: int) -> End:
        end = End()
        await self.of[first].call(slot, end)
        return end

    async def came(self, slot: int, count: int = 1) -> End:
        while len(self.ends.get(slot, ())) < count:
            self.news.clear()
            await self.news.wait()
        return self.ends[slot][count - 1]


@asynccontextmanager
async def boards() -> AsyncIterator[Boards]:
    found = Boards()
    for board in found.of.values():
        board.join("test")
    async with asyncio.timeout(SECONDS):
        yield found
        for board in found.of.values():
            await board.leave("test")
            await board.leave("test")  # twice does no harm
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_streams_to_many_slots_share_a_socket_each_way_and_keep_their_order() -> None:
    async with boards() as found:
        slots = [*range(FAR, FAR + 5), NEAR + 1]
        for slot in slots:
            await found.listen(slot)
        ends = {slot: await found.call(NEAR, slot) for slot in slots}
        for number in range(30):
            for slot, end in ends.items():
                end.stream.write(b"%d to %d" % (number, slot))
        for slot, end in ends.items():
            other = await found.came(slot)
            await other.until(lambda other=other: len(other.heard) >= 30)
            assert other.heard == [b"%d to %d" % (number, slot) for number in range(30)]
            other.stream.writelines([b"back", b"twice"])
            await end.until(lambda end=end: len(end.heard) >= 2)
            assert end.heard == [b"back", b"twice"]
        assert (len(found.of[NEAR]._trunks), len(found.of[FAR]._trunks)) == (3, 1)  # its own has two ends


@pytest.mark.parametrize("closes", ["near", "far"])
async def test_an_end_comes_once_to_both_behind_all_that_was_written(closes: str) -> None:
    async with boards() as found:
        await found.listen(FAR)
        near = await found.call(NEAR, FAR)
        far = await found.came(FAR)
        one, other = (near, far) if closes == "near" else (far, near)
        for number in range(5):
            one.stream.write(b"%d" % number)
        one.stream.close()
        one.stream.abort()
        one.stream.write(b"too late")
        await other.until(lambda: None in other.heard)
        assert other.heard == [b"0", b"1", b"2", b"3", b"4", None]
        await one.until(lambda: None in one.heard)
        assert one.heard == [None]
        assert near.stream.is_closing()
        assert far.stream.is_closing()
        again = await found.call(NEAR, FAR)  # the socket is there still
        again.stream.write(b"once more")
        third = await found.came(FAR, 2)
        await third.until(lambda: third.heard == [b"once more"])


async def test_nobody_answers_at_a_slot_that_does_not_listen_or_hung_up() -> None:
    async with boards() as found:
        await found.listen(FAR)
        await found.listen(FAR + 1)
        found.of[FAR].hang_up(FAR + 1)
        for slot in (FAR + 1, FAR + 2):
            end = await found.call(NEAR, slot)
            await end.until(lambda end=end: end.heard == [None])


async def test_what_comes_to_a_stream_that_is_not_read_waits_and_its_end_too() -> None:
    async with boards() as found:
        await found.listen(FAR)
        await found.listen(FAR + 1)
        near, beside = await found.call(NEAR, FAR), await found.call(NEAR, FAR + 1)
        far = await found.came(FAR)
        far.stream.pause_reading()
        far.stream.pause_reading()
        near.stream.write(b"one")
        near.stream.close()
        beside.stream.write(b"behind")
        other = await found.came(FAR + 1)
        await other.until(lambda: other.heard == [b"behind"])
        assert far.heard == []
        far.stream.resume_reading()
        await far.until(lambda: None in far.heard)
        assert far.heard == [b"one", None]


async def test_all_streams_of_a_socket_break_with_it_and_the_next_call_makes_another() -> None:
    async with boards() as found:
        await found.listen(FAR)
        ends = [await found.call(NEAR, FAR) for _ in range(3)]
        await found.came(FAR, 3)
        (trunk,) = found.of[FAR]._trunks
        found.ends[FAR][0].stream.pause_reading()
        trunk.drop()
        for end in (*ends, *found.ends[FAR]):
            await end.until(lambda end=end: end.heard == [None])
        again = await found.call(NEAR, FAR)
        again.stream.write(b"again")
        fourth = await found.came(FAR, 4)
        await fourth.until(lambda: fourth.heard == [b"again"])


async def test_what_was_not_sent_counts_for_the_stream_that_wrote_it() -> None:
    async with boards() as found:
        await found.listen(FAR)
        near, beside = await found.call(NEAR, FAR), await found.call(NEAR, FAR)
        await found.came(FAR, 2)
        near.stream.write(bytes(1 << 19))
        near.stream.write(bytes(1 << 19))
        beside.stream.write(b"little")
        assert beside.stream.get_write_buffer_size() <= len(b"little")
        assert near.stream.get_write_buffer_size() <= 1 << 20
        far = found.ends[FAR][0]
        await far.until(lambda: len(far.heard) == 2)
        near.stream.write(b"a sign")
        await far.until(lambda: len(far.heard) == 3)
        assert near.stream.get_write_buffer_size() <= len(b"a sign")


async def test_only_what_waits_counts_on_a_socket_that_is_never_empty() -> None:
    """A process that does not read any more has what its system took; the rest waits here, some of each stream."""
    async with boards() as found:
        await found.listen(FAR)
        ends = [await found.call(NEAR, FAR) for _ in range(3)]
        await found.came(FAR, 3)
        (trunk,) = found.of[NEAR]._trunks
        (other,) = found.of[FAR]._trunks
        assert other.socket is not None
        other.socket.pause_reading()
        while trunk.waiting() < 1 << 21:
            for end in ends:
                end.stream.write(bytes(1 << 16))
            await asyncio.sleep(0)
        unsent = [end.stream.get_write_buffer_size() for end in ends]
        assert trunk.waiting() <= sum(unsent) + 64 * sum(unsent) // (1 << 16)  # the heads of records
        assert sum(unsent) <= trunk.waiting() + (1 << 16)  # a record may have left in part
        assert max(unsent) - min(unsent) <= 2 << 16
        other.socket.resume_reading()
        for end in ends:
            end.stream.write(b"last")
        for far in found.ends[FAR]:
            await far.until(lambda far=far: far.heard[-1:] == [b"last"])
        assert [end.stream.get_write_buffer_size() for end in ends] == [0, 0, 0]


async def test_a_socket_in_which_too_much_waits_breaks_though_each_stream_was_dropped_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(switchboard, "_TRUNK_BYTES_MAX", 1 << 22)
    async with boards() as found:
        await found.listen(FAR)
        await found.call(NEAR, FAR)
        await found.came(FAR)
        (trunk,) = found.of[NEAR]._trunks
        (other,) = found.of[FAR]._trunks
        assert other.socket is not None
        other.socket.pause_reading()
        most = 0
        while trunk.socket is not None:
            end = await found.call(NEAR, FAR)
            end.stream.write(bytes(1 << 20))
            end.stream.abort()
            most = max(most, trunk.waiting())
            await asyncio.sleep(0)
        assert most <= (1 << 22) + (1 << 21)


@pytest.mark.parametrize("rest", [0, 1])
async def test_an_error_of_one_stream_breaks_all_and_loses_nothing_unseen(
    rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "RECORDS_A_TURN", 2)
    wrong: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context.get("exception")))
    async with boards() as found:
        await found.listen(FAR)
        await found.listen(FAR + 1)
        near, beside = await found.call(NEAR, FAR), await found.call(NEAR, FAR + 1)
        far, other = await found.came(FAR), await found.came(FAR + 1)

        def fails(_data: bytes) -> None:
            raise ZeroDivisionError

        far.data_received = fails  # type: ignore[method-assign]
        for _ in range(3 * rest):
            beside.stream.write(b"before")
        near.stream.write(b"x")
        for _ in range(5):
            beside.stream.write(b"behind")
        for end in (near, beside, far, other):
            await end.until(lambda end=end: None in end.heard)
    assert [type(error) for error in wrong if error is not None][:1] == [ZeroDivisionError]


async def test_who_never_shows_the_key_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "PROVE_S", 0.01)
    async with boards() as found:
        await found.listen(FAR)
        near = await found.call(NEAR, FAR)
        far = await found.came(FAR)
        reader, writer = await asyncio.open_connection(*found.places[FAR])
        writer.write(KEY[:5])
        assert await reader.read() == b""
        writer.close()
        near.stream.write(b"still here")
        await far.until(lambda: far.heard == [b"still here"])


@pytest.mark.parametrize("said", [bytes(KEY_BYTES), KEY[:-1] + b"\0", KEY + length_of(b"") * 4])
async def test_who_does_not_know_the_key_or_is_out_of_step_is_cut_off(said: bytes) -> None:
    async with boards() as found:
        await found.listen(FAR)
        reader, writer = await asyncio.open_connection(*found.places[FAR])
        for byte in said:  # a byte at a time
            writer.write(bytes((byte,)))
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert found.ends == {}


@pytest.mark.parametrize("breaks", [False, True])
async def test_few_records_of_a_socket_are_taken_in_a_turn_and_none_is_lost(
    breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "RECORDS_A_TURN", 4)
    turns: list[int] = []

    class Slow(End):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            turns.append(turn)

    turn = 0

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        ticking[0] = asyncio.get_running_loop().call_soon(next_turn)

    async with boards() as found:
        slow = Slow()
        await found.of[FAR].listen(FAR, lambda: slow)
        near = await found.call(NEAR, FAR)
        ticking = [asyncio.get_running_loop().call_soon(next_turn)]
        for number in range(100):
            near.stream.write(b"%d" % number)
        near.stream.close()
        if breaks:
            await slow.until(lambda: len(slow.heard) > 8)
            (trunk,) = found.of[FAR]._trunks
            trunk.drop()
        await slow.until(lambda: None in slow.heard)
        ticking[0].cancel()
        whole = [b"%d" % number for number in range(100)]
        assert slow.heard == [*whole[: len(turns)], None]
        if not breaks:
            assert len(turns) == 100
            assert max(Counter(turns).values()) <= 4


async def test_who_says_nothing_takes_nobodys_place() -> None:
    async with boards() as found:
        await found.listen(FAR)
        idle = [await asyncio.open_connection(*found.places[FAR]) for _ in range(STRANGERS_MAX + 1)]
        near = await found.call(NEAR, FAR)
        near.stream.write(b"here")
        far = await found.came(FAR)
        await far.until(lambda: far.heard == [b"here"])
        for _, writer in idle:
            writer.close()


async def test_a_process_that_is_not_there_is_told_and_called_again_once_it_is() -> None:
    async with boards() as found:
        with pytest.raises(ConnectionRefusedError):
            await found.call(NEAR, FAR)
        await found.listen(FAR)
        (await found.call(NEAR, FAR)).stream.write(b"now")
        far = await found.came(FAR)
        await far.until(lambda: far.heard == [b"now"])


async def test_what_was_written_leaves_before_the_last_user_has_left() -> None:
    found = Boards()
    for board in found.of.values():
        board.join("one")
    found.of[NEAR].join("two")
    async with asyncio.timeout(SECONDS):
        await found.listen(FAR)
        near = await found.call(NEAR, FAR)
        far = await found.came(FAR)
        await found.of[NEAR].leave("one")
        for _ in range(40):
            near.stream.write(bytes(1 << 16))
        await found.of[NEAR].leave("two")
        await far.until(lambda: None in far.heard)
        assert [len(data or b"") for data in far.heard] == [1 << 16] * 40 + [0]
        await found.of[FAR].leave("one")


def test_a_key_has_its_length() -> None:
    with socket.socket() as bound, pytest.raises(ValueError, match="32 bytes"):
        Switchboard(b"short", bound, lambda _slot: Address("127.0.0.1", 1))
