"""When a peer says that nothing comes to it any more."""

from __future__ import annotations

import pytest

from p2pdp.peer.standstill import GAPS_MIN, TOLD_MAX, Standstill

PATIENCE_S = 10.0


def said(watch: Standstill, counts: dict[float, int], until_s: float) -> list[float]:
    """The moments at which it says so, if there are so many records and sends from these times on."""
    now_s, told = 0.0, []
    while now_s < until_s:
        now_s = watch.wake_at_s(now_s)
        count = max([number for since_s, number in counts.items() if since_s <= now_s], default=0)
        if watch.look(count, count, now_s):
            told.append(now_s)
    return told


def public(*, going: bool = True) -> Standstill:
    return Standstill(PATIENCE_S, lambda: going, lambda: {2, 1})


def test_four_patiences_without_a_record_are_enough_where_the_schedule_is_public() -> None:
    assert said(public(), {0.0: 5, 50.0: 8}, 91.0) == [42.5, 90.0]
    assert public().waits_for == [1, 2]


def test_where_the_schedule_is_public_what_comes_is_no_move_unless_something_follows_from_it() -> None:
    waits_for = {1, 2}
    watch = Standstill(PATIENCE_S, lambda: True, lambda: waits_for)
    told = []
    for step in range(1, 60):
        if step == 30:
            waits_for = {1}
        if watch.look(10 * step, 3, 2.5 * step):
            told.append(2.5 * step)
    assert told == [45.0, 55.0, 65.0, 115.0, 125.0, 135.0, 145.0]


def test_it_is_said_again_each_patience_while_it_lasts_but_not_for_ever() -> None:
    assert said(public(), {0.0: 5}, 80.0) == [42.5, 52.5, 62.5, 72.5]
    assert len(said(public(), {0.0: 5}, 10_000.0)) == TOLD_MAX


def test_nothing_is_said_before_the_run_goes() -> None:
    assert said(public(going=False), {0.0: 5}, 1000.0) == []


@pytest.mark.parametrize(("visits", "most_s"), [(0, 2 * 6 * PATIENCE_S), (1, 2 * 6 * PATIENCE_S), (100, 40.0 + 2.5)])
def test_where_a_route_is_hidden_so_much_quiet_is_needed_that_a_moving_walk_leaves_none(
    visits: int, most_s: float
) -> None:
    watch = Standstill(PATIENCE_S, lambda: True, n=6)
    first, *_ = said(watch, {0.0: 5 + 3 * visits}, 1000.0)
    assert 4 * PATIENCE_S <= first <= most_s + PATIENCE_S / 2


def test_rare_visits_need_more_quiet() -> None:
    """A visit each 30 s for 750 s: the mean gap is 30 s, and so many of them have to pass."""
    watch = Standstill(PATIENCE_S, lambda: True, n=6)
    first, *_ = said(watch, {30.0 * visit: 5 + 3 * visit for visit in range(26)}, 6000.0)
    assert first - 750.0 == pytest.approx(GAPS_MIN * 30.0, rel=0.02)


def test_time_in_which_this_process_was_away_does_not_count() -> None:
    watch = public()
    assert said(watch, {0.0: 5}, 20.0) == []
    assert not watch.look(5, 5, 100.0)
    watch.begin_anew()
    assert watch.wake_at_s(100.0) == 102.5
    assert not watch.look(5, 5, 101.0)
