from __future__ import annotations

import asyncio

import pytest

from p2pdp.node.pulse import with_pulse


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
