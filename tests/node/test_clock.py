from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.expiry import Expired
from p2pdp.core.spec import RunPart
from p2pdp.node import clock
from p2pdp.node.clock import Clock, Expiry, check_expires, refuse_expired


def test_the_clock_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([5.0, 7.0, 6.0, 8.0])
    monkeypatch.setattr(time, "time", lambda: next(told))
    clock = Clock()
    assert [clock.now_s() for _ in range(4)] == [5.0, 7.0, 7.0, 8.0]


LONG_AGO = RunPart("walk.sum", 3, expires="2020-01-01T00:00:00+00:00")
IN_CENTURIES = RunPart("walk.sum", 3, expires="2620-01-01T00:00:00+00:00")
NEVER = RunPart("walk.sum", 3)
TEN = RunPart("walk.sum", 3, expires="1970-01-01T00:00:10+00:00")


class Watched:
    def __init__(self, *times_s: float) -> None:
        self.times_s = list(times_s)
        self.ended: list[BaseException] = []
        self.expiry = Expiry(lambda: self.times_s.pop(0), self.ended.append)


async def test_time_that_is_over_ends_at_once_and_once() -> None:
    watched = Watched(10.0)
    watched.expiry.watch(TEN)
    assert [type(error) for error in watched.ended] == [Expired]
    await asyncio.sleep(0)
    assert len(watched.ended) == 1


async def test_the_clock_is_looked_at_again_since_it_may_be_set() -> None:
    watched = Watched(9.99, 3.0, 9.995, 11.0)  # it is put back, and then forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "LOOK_S", 0.01)
        watched.expiry.watch(TEN)
        async with asyncio.timeout(20):
            while not watched.ended:  # noqa: ASYNC110  (an end is no event here)
                await asyncio.sleep(0.001)
    assert watched.times_s == []


async def test_who_has_ended_in_time_is_left_alone() -> None:
    watched = Watched(9.995, 11.0)
    watched.expiry.watch(TEN)
    watched.expiry.stop()
    watched.expiry.stop()
    await asyncio.sleep(0.03)
    assert watched.ended == []


async def test_a_run_that_never_expires_is_not_watched() -> None:
    watched = Watched(1e18)
    watched.expiry.watch(NEVER)
    await asyncio.sleep(0)
    assert watched.ended == []


def test_keys_of_an_expired_run_go_before_anything_else_happens(tmp_path: Path) -> None:
    keys = [tmp_path / "a", tmp_path / "b"]
    keys[0].write_bytes(bytes(32))
    for run in (NEVER, IN_CENTURIES):
        refuse_expired(run, keys)
        check_expires(run)
    assert keys[0].exists()
    with pytest.raises(Expired):
        refuse_expired(LONG_AGO, keys)
    assert not keys[0].exists()


def test_a_run_cannot_begin_after_its_end() -> None:
    with pytest.raises(UsageError, match=r"\[run\] expires: 2020.* has passed"):
        check_expires(LONG_AGO)
