from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.expiry import Expired
from p2pdp.core.spec import RunPart
from p2pdp.node import clock
from p2pdp.node.clock import BEAT_S, LATE_S, Clock, Expiry, LoopClock, OnTime, Turns, check_expires, refuse_expired


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
        async with asyncio.timeout(240):
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


def test_time_goes_on_as_it_passes_while_beats_come() -> None:
    time_s = OnTime(1000.0, 5.0)
    for beat in range(1, 100):
        steady_s = 5.0 + beat * BEAT_S
        assert time_s.at(steady_s) == pytest.approx(1000.0 + beat * BEAT_S, abs=1e-9)
        time_s.beat(steady_s)


@given(st.lists(st.floats(0.0, 1e6), max_size=30), st.floats(1e9, 2e9))
def test_a_late_beat_costs_no_more_than_is_allowed_and_time_never_falls(gaps_s: list[float], begin_s: float) -> None:
    time_s, steady_s, last_s = OnTime(begin_s, 7.0), 7.0, begin_s
    for gap_s in gaps_s:
        steady_s += gap_s
        for now_s in (time_s.at(steady_s - gap_s / 2), time_s.at(steady_s)):
            assert now_s >= last_s
            last_s = now_s
        time_s.beat(steady_s)
        assert last_s - begin_s <= (BEAT_S + LATE_S) * len(gaps_s) + 1e-3
        assert last_s - begin_s <= steady_s - 7.0 + 1e-3


async def test_all_in_a_loop_share_a_clock_that_leaves_out_its_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LoopClock.of_loop()
    assert LoopClock.of_loop() is clock
    began_s, really = clock.now_s(), time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: really() + 3600.0)  # as after a machine slept, in this very turn
    assert 0.0 < clock.now_s() - began_s <= BEAT_S + LATE_S
    async with asyncio.timeout(240):
        while clock.now_s() - began_s <= BEAT_S + LATE_S:  # noqa: ASYNC110  (a beat tells nobody)
            await asyncio.sleep(BEAT_S / 10)
    assert clock.now_s() - began_s < 60.0


def test_how_busy_a_machine_is_shows_in_how_long_a_thread_waits(tmp_path: Path) -> None:
    file, now_s = tmp_path / "schedstat", [0.0]

    def later(ran_s: float, waited_s: float) -> None:
        now_s[0] += 10.0
        file.write_text(f"{ran_s * 1e9:.0f} {waited_s * 1e9:.0f} 7\n")

    later(5.0, 1.0)
    turns = Turns(lambda: now_s[0], file)
    assert turns.slowness() == 1.0
    later(7.0, 1.0)
    assert turns.slowness() == 1.0, "it worked and never waited"
    later(8.0, 11.0)
    assert turns.slowness() == pytest.approx(10.0, rel=0.1)
    now_s[0] += 0.1
    assert turns.slowness() == pytest.approx(10.0, rel=0.1), "too soon to say"
    later(9.0, 11.0)
    assert turns.slowness() == pytest.approx(5.5, rel=0.1), "it falls slowly"
    for _ in range(10):
        later(9.0, 11.0)
        turns.slowness()
    assert turns.slowness() < 1.01
    assert Turns(file=tmp_path / "none").slowness() == 1.0
    file.write_text("nonsense")
    assert Turns(file=file).slowness() == 1.0
