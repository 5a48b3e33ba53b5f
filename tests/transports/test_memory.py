from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from p2pdp.transports import pool
from p2pdp.transports.memory import MemoryTransport
from tests.support.transport_worlds import MemoryWorld, live, play

if TYPE_CHECKING:
    import pytest

story = live(MemoryTransport)


@story
async def test_a_frame_is_handed_over_by_a_later_callback(world: MemoryWorld) -> None:
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, b"\x01\x01")
    assert two.frames == []
    await asyncio.sleep(0)
    assert two.frames == [b"\x01\x01"]


@story
async def test_who_listens_last_is_the_peer(world: MemoryWorld) -> None:
    one, early, late = world.node(1), await world.listening(2), await world.listening(2)
    one.send(2, b"\x01\x01")
    await late.until_frames(b"\x01\x01")
    await world.stop(early)  # and takes nobody's place with it
    three = world.node(3)
    three.send(2, b"\x01\x03")
    await late.until_frames(b"\x01\x01", b"\x01\x03")


@story
async def test_nobody_looks_for_a_peer_after_closing(world: MemoryWorld) -> None:
    one, three = world.node(1), world.node(3)
    for node in (one, three):
        node.send(2, bytes((1, node.peer)))
    await world.stop(one)
    assert list(world.hub._seeking[2]) == [three.transport]
    two = await world.listening(2)
    await two.until_frames(b"\x01\x03")


@story
async def test_the_peer_that_came_by_itself_is_not_called_as_well(world: MemoryWorld) -> None:
    one, two = await world.listening(1), world.node(2)
    two.believe()
    one.send(2, b"\x01\x01first")
    two.send(1, b"\x01\x02")
    await two.until_frames(b"\x01\x01first")
    await world.listen(two)
    one.send(2, b"\x01\x01then")
    await two.until_frames(b"\x01\x01first", b"\x01\x01then")
    assert len(set(two.origins)) == 1
    assert isinstance(one.transport, MemoryTransport)
    assert len(one.transport._alive) == 1


def test_what_was_not_taken_yet_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "QUEUE_FRAMES_MAX", 10)

    async def flood(world: MemoryWorld) -> None:
        one, two = world.node(1), await world.listening(2)
        frames = [bytes((1, 1, number)) for number in range(30)]
        for frame in frames:
            one.send(2, frame)
        await two.until_frames(*frames[:10])
        one.send(2, b"\x01\x01on")
        await two.until_frames(*frames[:10], b"\x01\x01on")

    play(flood, "asyncio", MemoryTransport)


def test_who_sends_much_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "QUEUE_FRAMES_MAX", 10)

    async def flood(world: MemoryWorld) -> None:
        one, two, three = world.node(1), await world.listening(2), world.node(3)
        for node in (one, three):
            node.send(2, bytes((1, 1, 99)))
        await two.until_count(2)
        for number in range(30):
            one.send(2, bytes((1, 1, number)))
        three.send(2, b"\x01\x03on")
        await two.until_count(13)
        assert two.frames[-1] == b"\x01\x03on"

    play(flood, "asyncio", MemoryTransport)
