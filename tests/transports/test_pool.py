"""Dials of a transport whose ways are made by hand; the suite in `tests/contracts` does the same with real ones."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import Peer
from p2pdp.transports import pool
from p2pdp.transports.pool import DIAL_WAIT_MAX_S, DIAL_WAIT_S, Connection, DiallingPool, FrameQueue


@given(st.lists(st.one_of(st.none(), st.binary(max_size=12)), max_size=60))
def test_a_queue_is_in_order_and_keeps_what_came_first(actions: list[bytes | None]) -> None:
    """None takes a frame out; anything else is put in."""
    model: deque[bytes] = deque()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "QUEUE_FRAMES_MAX", 5)
        patch.setattr(pool, "QUEUE_BYTES_MAX", 30)
        queue = FrameQueue()
        for frame in actions:
            if frame is None:
                if model:
                    assert queue.take() == model.popleft()
            else:
                room = len(model) < 5 and sum(map(len, model)) + len(frame) <= 30
                assert queue.add(frame) == room
                if room:
                    model.append(frame)
            assert len(queue) == len(model)


def test_the_bounds_are_those_of_the_largest_run() -> None:
    queue = FrameQueue()
    assert all(queue.add(b"") for _ in range(pool.QUEUE_FRAMES_MAX))
    assert not queue.add(b"")
    queue = FrameQueue()
    assert queue.add(bytes(pool.QUEUE_BYTES_MAX))
    assert queue.add(b"")
    assert not queue.add(b"a")


SHELL: Any = type("Shell", (), {"lost": lambda *_: None, "connected": lambda *_: None, "arrived": lambda *_: None})()


class ByHand(Connection):
    def __init__(self, owner: DiallingPool[str], peer: Peer) -> None:
        self.peer = peer
        self.owner = owner
        self.written: list[bytes] = []

    def write(self, frame: bytes) -> None:
        self.written.append(frame)

    def proved(self) -> None: ...

    def leave(self) -> None: ...

    def finish(self) -> None:
        self.owner.closed(self)

    def drop(self) -> None:
        self.owner.closed(self)


class Dials(DiallingPool[str]):
    """The dial of that number comes through, those before come to nothing."""

    def __init__(self, through_at: int, places: dict[Peer, str]) -> None:
        super().__init__(SHELL, places.get, 8)
        self.through_at = through_at
        self.called: list[str] = []
        self.connection: ByHand | None = None
        self.through = asyncio.Event()

    async def _call(self, peer: Peer, place: str) -> None:
        self.called.append(place)
        if len(self.called) == self.through_at:
            self.connection = ByHand(self, peer)
            self.opened(self.connection)
            self.through.set()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was slept, in place of sleeping."""
    slept: list[float] = []
    turn = asyncio.sleep

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        await turn(0)

    monkeypatch.setattr(pool.asyncio, "sleep", sleep)
    return slept


async def test_frames_wait_for_the_dial_that_comes_through(waited: list[float]) -> None:
    transport = Dials(10, {2: "there"})
    transport.send(2, b"one")
    transport.send(2, b"two")
    await transport.through.wait()
    assert transport.called == ["there"] * 10
    assert transport.connection is not None
    assert transport.connection.written == [b"one", b"two"]
    assert waited == [min(DIAL_WAIT_S * 2**power, DIAL_WAIT_MAX_S) for power in range(9)]
    await transport.close()


@pytest.mark.parametrize("heard", [True, False])
async def test_only_a_way_that_brought_something_ends_the_waits(waited: list[float], heard: bool) -> None:
    transport = Dials(3, {2: "there"})
    transport.send(2, b"one")
    await transport.through.wait()
    assert transport.connection is not None
    transport.connection.heard = heard
    transport.connection.drop()
    before = len(waited)
    transport.through_at, transport.through = 4, asyncio.Event()
    transport.send(2, b"again")
    await transport.through.wait()
    assert len(waited) - before == (0 if heard else 1)
    await transport.close()


async def test_who_is_nowhere_is_not_called_and_closing_gives_up(waited: list[float]) -> None:
    transport = Dials(1, {})
    transport.send(2, b"one")
    while len(waited) < 5:
        await _turn()
    assert transport.called == []
    await transport.close()
    assert transport._dials == {}


async def _turn() -> None:
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
