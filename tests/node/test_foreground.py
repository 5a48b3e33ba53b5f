from __future__ import annotations

import asyncio
import os
import signal

import pytest
import uvloop

from p2pdp.core.errors import Refused, RunFailed
from p2pdp.node.foreground import run_in_foreground


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
    made = uvloop.new_event_loop
    ended: list[str] = []

    def told() -> asyncio.AbstractEventLoop:
        os.kill(os.getpid(), number)
        return made()

    async def body() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    monkeypatch.setattr(uvloop, "new_event_loop", told)
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

    with pytest.raises(RunFailed, match=r"ZeroDivisionError in test_foreground\.py, line \d+") as caught:
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
