"""Dials of a transport whose ways are made by hand; the suite in `tests/contracts` does the same with real ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from p2pdp.core.ids import Peer
from p2pdp.transports import dialling
from p2pdp.transports.dialling import DIAL_WAIT_MAX_S, DIAL_WAIT_S, Dialling
from p2pdp.transports.ways import Way

SHELL: Any = type("Shell", (), {"lost": lambda *_: None, "connected": lambda *_: None, "arrived": lambda *_: None})()


class ByHand(Way):
    def __init__(self, owner: Dialling[str], peer: Peer) -> None:
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


class Dials(Dialling[str]):
    """The dial of that number comes through, those before come to nothing."""

    def __init__(self, through_at: int, places: dict[Peer, str]) -> None:
        super().__init__(SHELL, places.get, 8)
        self.through_at = through_at
        self.called: list[str] = []
        self.way: ByHand | None = None
        self.through = asyncio.Event()

    async def _call(self, peer: Peer, place: str) -> None:
        self.called.append(place)
        if len(self.called) == self.through_at:
            self.way = ByHand(self, peer)
            self.opened(self.way)
            self.through.set()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was slept, in place of sleeping."""
    slept: list[float] = []
    turn = asyncio.sleep

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        await turn(0)

    monkeypatch.setattr(dialling.asyncio, "sleep", sleep)
    return slept


async def test_frames_wait_for_the_dial_that_comes_through(waited: list[float]) -> None:
    transport = Dials(10, {2: "there"})
    transport.send(2, b"one")
    transport.send(2, b"two")
    await transport.through.wait()
    assert transport.called == ["there"] * 10
    assert transport.way is not None
    assert transport.way.written == [b"one", b"two"]
    assert waited == [min(DIAL_WAIT_S * 2**power, DIAL_WAIT_MAX_S) for power in range(9)]
    await transport.close()


@pytest.mark.parametrize("heard", [True, False])
async def test_only_a_way_that_brought_something_ends_the_waits(waited: list[float], heard: bool) -> None:
    transport = Dials(3, {2: "there"})
    transport.send(2, b"one")
    await transport.through.wait()
    assert transport.way is not None
    transport.way.heard = heard
    transport.way.drop()
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
