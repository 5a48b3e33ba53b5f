from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from p2pdp.core.errors import Refused, RunFailed
from p2pdp.node import process as foreground
from p2pdp.node.process import run_in_foreground, with_pulse, working


def test_what_it_gives_is_given_and_signals_are_as_they_were() -> None:
    async def body() -> int:
        return 7

    before = signal.getsignal(signal.SIGTERM)
    assert run_in_foreground(body) == 7
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(number: int) -> None:
    ended: list[str] = []

    async def body() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    with pytest.raises(SystemExit) as stopped:
        run_in_foreground(body)
    assert (stopped.value.code, ended) == (130, ["in order"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_loop_is_made_is_heard_when_it_runs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = foreground.new_event_loop
    ended: list[str] = []

    def told() -> asyncio.AbstractEventLoop:
        os.kill(os.getpid(), number)
        return made()

    async def body() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    monkeypatch.setattr(foreground, "new_event_loop", told)
    with pytest.raises(SystemExit) as stopped:
        run_in_foreground(body)
    assert (stopped.value.code, ended) == (130, ["in order"])


def test_errors_of_ours_come_as_they_are() -> None:
    async def body() -> None:
        raise Refused("no")

    with pytest.raises(Refused, match="no"):
        run_in_foreground(body)


@pytest.mark.parametrize("later", [False, True])
def test_of_other_errors_kind_and_place_are_told_and_no_value(later: bool) -> None:
    def crash() -> None:
        raise ZeroDivisionError("31.4159")

    async def body() -> None:
        if not later:
            crash()
        asyncio.get_running_loop().call_soon(crash)
        await asyncio.Event().wait()

    with pytest.raises(RunFailed, match=r"ZeroDivisionError in test_process\.py, line \d+") as caught:
        run_in_foreground(body)
    assert "31.4159" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_errors_of_the_network_in_a_callback_end_nothing() -> None:
    def broken() -> None:
        raise ConnectionResetError

    async def body() -> int:
        asyncio.get_running_loop().call_soon(broken)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return 1

    assert run_in_foreground(body) == 1


async def test_it_beats_while_the_body_runs_and_once_more_at_its_end() -> None:
    beaten = asyncio.Event()
    beats: list[None] = []

    def beat() -> None:
        beats.append(None)
        beaten.set()

    async def body() -> int:
        await beaten.wait()
        return 7

    assert await with_pulse(body(), beat, 0.001) == 7
    count = len(beats)
    assert count >= 2
    await asyncio.sleep(0.01)
    assert len(beats) == count


async def test_what_ends_the_body_ends_it_after_a_last_beat() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    beats: list[None] = []
    with pytest.raises(ZeroDivisionError):
        await with_pulse(fails(), lambda: beats.append(None))
    assert len(beats) == 1


GUARD_S = 240.0


def test_the_work_is_done_after_the_last_nudge_however_often_somebody_nudges() -> None:
    state = 0
    seen: list[int] = []
    with working(lambda: seen.append(state), 0.001) as nudge:
        for state in range(1, 200):  # noqa: B007 - the work reads it
            nudge()
    assert seen[-1] == 199


def test_nudges_during_the_work_are_one_more_time() -> None:
    entered, go_on, done = threading.Event(), threading.Event(), []

    def work() -> None:
        entered.set()
        go_on.wait(GUARD_S)
        done.append(None)

    with working(work, 1000.0) as nudge:
        nudge()
        assert entered.wait(GUARD_S)
        for _ in range(50):
            nudge()
        go_on.set()
    assert 2 <= len(done) <= 3


def test_no_thread_is_left() -> None:
    with working(lambda: None, 1000.0):
        assert threads() == 1
    assert threads() == 0


def threads() -> int:
    return sum(thread.name == "worker" for thread in threading.enumerate())


def test_a_process_has_some_memory_and_less_than_the_machine() -> None:
    found = foreground.resident_bytes()
    if found is None:
        pytest.skip("this system does not tell")
    assert 1 << 20 < found < 1 << 40


def test_where_the_system_does_not_tell_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreground, "_STATM", tmp_path / "absent")
    assert foreground.resident_bytes() is None
