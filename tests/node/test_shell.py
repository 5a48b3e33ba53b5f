from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from p2pdp.core.errors import NotReady
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import LEDGER_MAGIC
from p2pdp.node import aside
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk
from p2pdp.node.loops import new_event_loop
from p2pdp.node.shell import READ_TURNS, READ_TURNS_MAX, TOTALS_FILE, HostShell
from p2pdp.peer.effects import Effects, HopEffects
from p2pdp.peer.host import Host
from p2pdp.wire.frames import Kind


class Toy:
    """A host that counts calls and does what a test says."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.effects = Effects()
        self.error: Exception | None = None
        self.usual: HopEffects | None = None
        self.gathers = False
        self.gathered: list[tuple[str, bytes]] = []
        self.proved: tuple[int | None, bool] = (3, True)
        self.done = self.stopped = self.wants_idle = False
        self.fault_counts = {"gap": 2}
        self.slowness = 1.0

    def _call(self, name: str) -> Effects:
        self.calls.append(name)
        if self.error is not None:
            raise self.error
        return self.effects

    def begin(self, _now_s: float) -> Effects:
        return self._call("begin")

    def fast_frame(self, _data: bytes, _now_s: float) -> HopEffects | None:
        return self.usual

    def full_frame(self, _data: bytes, _now_s: float) -> Effects:
        return self._call("frame")

    def take_writes(self) -> list[tuple[str, bytes]]:
        taken, self.gathered = self.gathered, []
        return taken

    def connected(self, peer: int, _now_s: float) -> Effects:
        return self._call(f"connected {peer}")

    def wake(self, _now_s: float) -> Effects:
        return self._call("wake")

    def idle(self, _now_s: float) -> Effects:
        self.wants_idle = False
        return self._call("idle")

    @property
    def over(self) -> bool:
        return self.done or self.stopped


class Wire:
    """A transport that notes what was on the disk when a frame was handed to it."""

    def __init__(self, file: Path) -> None:
        self.strangers = {"somebody"}
        self.file = file
        self.sent: list[tuple[int, bytes, bytes]] = []
        self.proved: list[tuple[object, int]] = []
        self.answered: list[tuple[object, bytes, bytes]] = []

    def send(self, peer: int, frame: bytes) -> None:
        self.sent.append((peer, frame, self.file.read_bytes()))

    def answer(self, origin: object, frame: bytes) -> None:
        self.answered.append((origin, frame, self.file.read_bytes()))

    def belongs(self, origin: object, peer: int) -> None:
        self.proved.append((origin, peer))


def shell_in(folder: Path, documents: Any = None) -> tuple[HostShell, Wire]:
    given = documents or (lambda *_: None)
    shell = HostShell(Disk(folder, power=False), Clock(), given, lambda _output: None)
    wire = Wire(folder / "view.ledger")
    shell.transport = wire  # type: ignore[assignment]
    return shell, wire


def with_host(folder: Path) -> tuple[HostShell, Wire, Toy]:
    shell, wire = shell_in(folder)
    toy = Toy()
    shell.begin(cast("Host", toy))
    return shell, wire, toy


BOXED = bytes([1, Kind.BOXED]) + b"rest"


async def test_a_record_is_written_before_its_frame_leaves(tmp_path: Path) -> None:
    shell, wire = shell_in(tmp_path)
    shell.carry_out(Effects(writes=((VIEW, LEDGER_MAGIC),), frames=((1, b"frame"),)))
    assert wire.sent == [(1, b"frame", LEDGER_MAGIC)]
    assert shell.bytes_sent == len(b"frame")
    shell.stop()


async def test_what_is_no_boxed_frame_goes_to_enrolment(tmp_path: Path) -> None:
    documents: list[tuple[Any, bytes]] = []
    shell, _ = shell_in(tmp_path, lambda origin, frame: documents.append((origin, frame)))
    shell.arrived("origin", b"\x01\x02rest")
    shell.arrived("origin", b"\x01\x01boxed, but there is no host yet")
    assert documents == [("origin", b"\x01\x02rest")]
    await asyncio.sleep(0)
    shell.stop()


async def test_a_frame_goes_to_the_host_and_its_origin_to_whom_it_proved(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    shell.arrived("known", BOXED)
    assert (toy.calls, wire.proved) == (["begin", "frame"], [])
    shell.arrived("somebody", BOXED)
    assert wire.proved == [("somebody", 3)]
    toy.proved = None, False
    shell.arrived("somebody", BOXED)
    assert wire.proved == [("somebody", 3)]
    shell.stop()


async def test_a_fast_hop_is_written_before_it_is_sent_on_and_asks_for_no_more(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.usual = ((VIEW, b"entry"),), [(7, b"onward")], None
    toy.wants_idle = True
    shell.arrived("known", BOXED)
    assert wire.sent == [(7, b"onward", b"entry")]
    assert (toy.calls, shell.bytes_sent) == (["begin"], len(b"onward"))
    await asyncio.sleep(0)
    assert toy.calls == ["begin", "idle"]
    shell.arrived("somebody", BOXED)
    assert toy.calls == ["begin", "idle", "frame"], "a stranger's is never taken for one"
    shell.stop()


async def test_what_the_fast_path_leaves_for_later_is_neither_written_nor_sent(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.usual = (), (), None
    shell.arrived("known", BOXED)
    assert (toy.calls, wire.sent, wire.file.read_bytes()) == (["begin"], [], b"")
    shell.stop()


async def test_what_a_host_gathers_is_written_once_and_frames_of_one_peer_leave_together(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.gathers = True
    for number in range(3):
        toy.gathered.append((VIEW, b"entry %d " % number))
        toy.usual = (), [(7, b"to 7: %d" % number), (8, b"to 8: %d" % number)], None
        shell.arrived("known", BOXED)
    toy.usual = (), (), None
    shell.arrived("known", BOXED)
    assert (wire.sent, shell.bytes_sent) == ([], 0)
    await asyncio.sleep(0)
    written = b"entry 0 entry 1 entry 2 "
    assert wire.sent == [(peer, b"to %d: %d" % (peer, number), written) for peer in (7, 8) for number in range(3)]
    assert (toy.gathered, shell.bytes_sent) == ([], 6 * len(b"to 7: 0"))
    shell.stop()


async def test_what_is_kept_leaves_before_what_comes_of_anything_else(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.gathers, toy.usual = True, ((), [(7, b"first")], None)
    toy.effects = Effects(writes=((VIEW, b"both"),), frames=((7, b"second"),))
    shell.arrived("known", BOXED)
    toy.usual = None
    shell.arrived("known", BOXED)
    assert wire.sent == [(7, b"first", b"both"), (7, b"second", b"both")]
    await asyncio.sleep(0)
    assert len(wire.sent) == 2
    shell.stop()


async def test_what_is_kept_when_it_stops_never_leaves_and_is_never_written(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.gathers, toy.usual = True, ((), [(7, b"frame")], None)
    toy.gathered.append((VIEW, b"entry"))
    shell.arrived("known", BOXED)
    shell.stop()
    await asyncio.sleep(0)
    assert (wire.sent, wire.file.read_bytes()) == ([], b"")


async def test_a_transport_that_can_is_given_frames_together(tmp_path: Path) -> None:
    class Together(Wire):
        together: tuple[int, list[bytes]] = (0, [])

        def send_together(self, peer: int, frames: list[bytes]) -> None:
            self.together = peer, frames

    shell, _, toy = with_host(tmp_path)
    shell.transport = wire = Together(tmp_path / "view.ledger")  # type: ignore[assignment]
    toy.gathers = True
    for frames in ([(7, b"a"), (8, b"b")], [(7, b"c")]):
        toy.usual = (), frames, None
        shell.arrived("known", BOXED)
    await asyncio.sleep(0)
    assert wire.together == (7, [b"a", b"c"])
    assert [(peer, frame) for peer, frame, _ in wire.sent] == [(8, b"b")]
    shell.stop()


async def test_a_fast_hop_sets_the_time_to_wake(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    toy.usual = ((VIEW, b"entry"),), [(7, b"onward")], 0.0
    shell.arrived("known", BOXED)
    toy.effects, toy.done = Effects(), True
    await asyncio.wait_for(shell.ended, 60.0)
    assert toy.calls[-1] == "wake"
    shell.stop()


async def test_an_old_frame_is_answered_where_it_came_from_and_proves_nothing(tmp_path: Path) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.proved = 3, False
    toy.effects = Effects(writes=((VIEW, LEDGER_MAGIC),), frames=((3, b"question"), (4, b"for another")))
    shell.arrived("somebody", BOXED)
    assert wire.proved == []
    assert wire.answered == [("somebody", b"question", LEDGER_MAGIC)]
    assert wire.sent == [(4, b"for another", LEDGER_MAGIC)]
    assert shell.bytes_sent == len(b"question" + b"for another")
    shell.arrived("known", BOXED)  # a way that is proved already
    assert [(peer, frame) for peer, frame, _ in wire.sent[1:]] == [(3, b"question"), (4, b"for another")]
    shell.stop()


async def test_after_a_lost_way_numbers_are_compared(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    shell.lost(4)
    shell.connected(5)
    toy.done = True
    shell.lost(6)  # nothing is left to say
    assert toy.calls == ["begin", "connected 4", "connected 5"]
    shell.stop()


async def test_while_there_is_no_host_a_lost_way_is_told_to_who_enrols(tmp_path: Path) -> None:
    lost: list[int] = []
    disk = Disk(tmp_path, power=False)
    shell = HostShell(disk, Clock(), lambda *_: None, lambda _output: None, lost.append)
    shell.lost(-1)
    shell.connected(-1)
    assert lost == [-1]
    shell.stop()


async def test_once_there_is_a_host_ways_are_told_as_they_come_and_go(tmp_path: Path) -> None:
    told: list[tuple[int, bool]] = []
    disk = Disk(tmp_path, power=False)
    shell = HostShell(
        disk,
        Clock(),
        lambda *_: None,
        lambda _output: None,
        on_connection=lambda peer, there: told.append((peer, there)),
    )
    shell.transport = Wire(tmp_path / "view.ledger")  # type: ignore[assignment]
    shell.lost(-1)
    toy = Toy()
    shell.begin(cast("Host", toy))
    shell.lost(-1)
    shell.connected(2)
    toy.done = True
    shell.lost(2)
    assert told == [(-1, False), (2, True), (2, False)]
    assert toy.calls == ["begin", "connected -1", "connected 2"]
    shell.stop()


@pytest.mark.parametrize("call", ["arrived", "lost", "connected", "wake"])
async def test_a_call_that_fails_ends_everything(tmp_path: Path, call: str) -> None:
    """What a transport calls never raises, and a host that broke is never called again."""
    shell, wire, toy = with_host(tmp_path)
    toy.error = NotReady("disk full")
    calls: dict[str, Callable[[], None]] = {
        "arrived": lambda: shell.arrived("origin", BOXED),
        "lost": lambda: shell.lost(1),
        "connected": lambda: shell.connected(1),
        "wake": lambda: shell.safely(lambda: shell._read_first(0, 0, 0)),
    }
    calls[call]()
    assert shell.ended.done()
    toy.error = None
    for act in calls.values():
        act()
    assert len(toy.calls) == 2
    assert wire.sent == []
    with pytest.raises(NotReady, match="disk full"):
        await shell.ended


async def test_no_frame_leaves_and_nothing_more_is_written_after_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, wire, toy = with_host(tmp_path)
    toy.effects = Effects(writes=((VIEW, LEDGER_MAGIC),), frames=((1, b"frame"),))

    def full(_disk: Disk, _writes: object) -> None:
        raise NotReady("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "append", full)
        shell.arrived("origin", BOXED)
    shell.arrived("origin", BOXED)
    assert wire.sent == []
    assert (tmp_path / "view.ledger").read_bytes() == b""
    with pytest.raises(NotReady):
        await shell.ended


async def test_the_host_is_woken_when_it_asked_for_it(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    toy.effects = Effects(wake_at_s=0.0)  # long ago
    shell.arrived("origin", BOXED)
    toy.effects = Effects()
    async with asyncio.timeout(60):
        while "wake" not in toy.calls:  # noqa: ASYNC110 - the toy has no event to wait for
            await asyncio.sleep(0)
    shell.stop()
    shell.safely(shell._woken)
    await turns_of_the_loop(2 * READ_TURNS_MAX)
    assert toy.calls.count("wake") == 1


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_arrived_is_read_before_the_host_is_woken(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    loop = asyncio.get_running_loop()
    shell.safely(shell._woken)
    for turn in range(1, 6):  # a frame in each of the next turns, as when much lies unread
        loop.call_soon(shell.arrived, "known", BOXED)
        await asyncio.sleep(0)
        assert toy.calls == ["begin"] + turn * ["frame"]
    await turns_of_the_loop(READ_TURNS + 1)
    assert toy.calls == ["begin", *5 * ["frame"], "wake"]
    shell.stop()


async def test_who_never_stops_sending_keeps_no_host_from_being_woken(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    shell._slowness = lambda: 3.0
    shell.safely(shell._woken)
    for _ in range(READ_TURNS_MAX + 2):
        shell.arrived("known", BOXED)
        await asyncio.sleep(0)
    assert toy.calls.count("wake") == 1
    assert toy.slowness == 3.0
    shell.stop()


async def test_sockets_are_read_before_a_host_is_woken_that_slept(tmp_path: Path) -> None:
    """The loop of live processes looks at its timers first; an answer that lies in a socket comes before the wake."""
    shell, _, toy = with_host(tmp_path)
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop.add_reader(ours, lambda: (ours.recv(1), shell.arrived("known", BOXED)))
    toy.effects = Effects(wake_at_s=0.0)
    shell.carry_out(toy.effects)
    toy.effects = Effects()
    theirs.send(b"answer")
    time.sleep(0.05)  # noqa: ASYNC251  (the loop stands still until the timer is due)
    async with asyncio.timeout(240):
        while "wake" not in toy.calls:  # noqa: ASYNC110  (the toy has no event to wait for)
            await asyncio.sleep(0)
    assert toy.calls == ["begin", *6 * ["frame"], "wake"]
    loop.remove_reader(ours)
    ours.close()
    theirs.close()
    shell.stop()


def test_that_holds_in_the_loop_of_live_processes_too(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(test_sockets_are_read_before_a_host_is_woken_that_slept(tmp_path))


async def test_who_is_done_or_was_rolled_back_has_ended(tmp_path: Path) -> None:
    for name in ("done", "stopped"):
        shell, _, toy = with_host(tmp_path / name)
        assert not shell.ended.done()
        setattr(toy, name, True)
        shell.arrived("origin", BOXED)
        shell.arrived("origin", BOXED)  # a curator goes on to acknowledge heads
        await shell.ended
        assert toy.calls == ["begin", "frame", "frame"]
        shell.stop()


async def test_totals_count_bytes_and_faults(tmp_path: Path) -> None:
    shell, _, toy = with_host(tmp_path)
    toy.effects = Effects(frames=((1, b"12345"), (2, b"678")))
    shell.arrived("origin", BOXED)
    shell.write_totals(tmp_path)
    assert json.loads((tmp_path / TOTALS_FILE).read_text()) == {"bytes": 8, "faults": {"gap": 2}}
    shell.stop()


MEANWHILE = Effects(frames=((1, b"meanwhile"),))


class Works(Toy):
    """A host whose call `frame` comes to work that lasts until a test ends it."""

    def __init__(self, shell: HostShell) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.work = shell.beside(lambda: self.gate.wait(30.0))
        self.meanwhile = self
        self.kept: list[bytes] = []

    def full_frame(self, _data: bytes, _now_s: float) -> Effects:
        self.calls.append("before")
        self.work()
        return self._call("frame")

    def begin(self, _now_s: float) -> Effects:  # of the host, and of what it does meanwhile
        effects = self._call("begin")
        return effects if self.calls == ["begin"] else MEANWHILE

    def frame(self, data: bytes, _now_s: float) -> Effects:
        self.calls.append("meanwhile")
        self.kept.append(data)
        return MEANWHILE

    def end(self, _now_s: float) -> None:
        self.calls.append("end")

    def next_kept(self, _now_s: float) -> Effects:
        self.calls.append(f"kept {len(self.kept.pop())}")
        return MEANWHILE


def working(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[HostShell, Wire, Works]:
    monkeypatch.setattr(aside, "LONG_S", 0.0)
    shell, wire = shell_in(folder)
    toy = Works(shell)
    shell.begin(cast("Host", toy))
    shell.arrived("known", BOXED)
    return shell, wire, toy


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30.0):
        while not holds():  # noqa: ASYNC110  (the toy has no event to wait for)
            await asyncio.sleep(0)


async def test_while_a_machine_works_frames_are_taken_and_wakes_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, wire, toy = working(tmp_path, monkeypatch)
    toy.effects = Effects(writes=((VIEW, LEDGER_MAGIC),), frames=((2, b"found"),))
    shell.arrived("known", BOXED)
    shell.safely(lambda: shell._read_first(0, 0, 0))
    assert toy.calls == ["begin", "before", "begin", "meanwhile", "wake"]
    toy.gate.set()
    await until(lambda: toy.calls[-1].startswith("kept"))
    assert toy.calls[5:] == ["end", "frame", "kept 6"]
    assert wire.sent[-2:] == [(2, b"found", 2 * LEDGER_MAGIC), (1, b"meanwhile", 2 * LEDGER_MAGIC)]
    shell.stop()


@pytest.mark.parametrize("long", [True, False])
async def test_work_that_takes_long_is_not_done_in_one_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    shell, _, toy = working(tmp_path, monkeypatch)
    toy.gate.set()
    await until(lambda: toy.calls[-1] == "frame")
    monkeypatch.setattr(aside, "LONG_S", 0.0 if long else 60.0)
    pieces: list[bytes] = []
    toy.fast_frame = lambda frame, _now_s: pieces.append(frame)
    shell.arrived("known", BOXED)
    assert pieces == ([] if long else [BOXED])
    await until(lambda: toy.calls.count("frame") == 2)
    shell.stop()


async def test_an_error_after_work_ends_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell, wire, toy = working(tmp_path, monkeypatch)
    toy.error = NotReady("disk full")
    toy.gate.set()
    with pytest.raises(NotReady, match="disk full"):
        await asyncio.wait_for(shell.ended, 30.0)
    shell.arrived("known", BOXED)
    assert toy.calls == ["begin", "before", "begin", "end", "frame"]
    assert [frame for _, frame, _ in wire.sent] == [b"meanwhile"]


@pytest.mark.parametrize("how", ["stopped", "rolled back"])
async def test_a_call_that_works_does_not_go_on_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    shell, _, toy = working(tmp_path, monkeypatch)
    thread = next(one for one in threading.enumerate() if one.name == "aside")
    if how == "stopped":
        shell.stop()
    else:
        toy.stopped = True
    toy.gate.set()
    await until(lambda: not thread.is_alive())
    assert toy.calls == ["begin", "before", "begin"]
    if how != "stopped":
        shell.stop()
