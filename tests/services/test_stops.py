"""Who is believed when a run cannot go on."""

from __future__ import annotations

import pytest

from p2pdp.core.endings import DISPUTE, STANDSTILL, Stopped
from p2pdp.core.ids import CURATOR
from p2pdp.services.stops import Stops, too_few

LIVE = frozenset(range(8))


def test_a_lost_message_ends_the_run_after_a_patience_by_the_names_of_both() -> None:
    stops = Stops(10.0)
    stops.disputed(1, 2, 3.0, needless=False)
    stops.disputed(1, 2, 9.0, needless=False)
    stops.disputed(4, 2, 5.0, needless=True)
    assert stops.wake_at_s == 13.0
    assert stops.due(12.9) is None
    assert stops.due(13.0) == Stopped(DISPUTE, [[1, 2], [4, 2]])


def test_a_needless_message_is_named_only_when_the_run_stands_still() -> None:
    stops = Stops(10.0)
    stops.disputed(4, 2, 5.0, needless=True)
    assert stops.wake_at_s is None
    assert stops.due(1e9) is None
    assert stops.standstill(LIVE, 30.0) == Stopped(DISPUTE, [[4, 2]])


@pytest.mark.parametrize("gone", [1, 2])
def test_a_dispute_is_over_when_one_of_both_is_out(gone: int) -> None:
    stops = Stops(10.0)
    stops.disputed(1, 2, 3.0, needless=False)
    stops.out(gone, 4.0)
    assert stops.due(100.0) is None


@pytest.mark.parametrize(("users", "saying"), [(8, 6), (5, 4), (4, 3), (3, 2), (2, 1), (1, 1), (100, 75)])
def test_all_but_a_quarter_have_to_say_that_nothing_comes(users: int, saying: int) -> None:
    stops, live = Stops(10.0), frozenset(range(users))
    for at_s in (20.0, 25.0):
        for peer in range(saying - 1):
            stops.stands(peer, [], at_s)
        stops.stands(CURATOR, [], at_s)
        stops.stands(users + 7, [], at_s)  # is out
    assert not stops.stands_still(live, 25.0)
    stops.stands(saying - 1, [], 21.0)
    assert not stops.stands_still(live, 25.0), "it may have been said long ago, and have come now"
    stops.stands(saying - 1, [], 26.0)
    assert stops.stands_still(live, 26.0)
    assert not stops.stands_still(live, 46.0), "what was said long ago counts no more"


def test_after_somebody_was_put_out_a_standstill_has_to_be_said_anew_and_later() -> None:
    stops = Stops(10.0)
    for peer in LIVE:
        stops.stands(peer, [], 25.0)
    stops.out(9, 25.0)
    for at_s in (34.0, 44.0):
        for peer in (*LIVE, CURATOR):
            stops.stands(peer, [], at_s)
    assert not stops.stands_still(LIVE, 44.9)
    assert stops.stands_still(LIVE, 45.0)


@pytest.mark.parametrize(("curator", "enough_s"), [(True, 5.0), (False, 20.0)])
def test_while_the_curator_does_not_say_so_too_users_have_to_say_it_for_longer(curator: bool, enough_s: float) -> None:
    stops = Stops(10.0)
    for later_s in (0.0, 5.0, 10.0, 15.0, 20.0):
        for peer in (*LIVE, CURATOR) if curator else LIVE:
            stops.stands(peer, [], 40.0 + later_s)
        assert stops.stands_still(LIVE, 40.0 + later_s) is (later_s >= enough_s)


@pytest.mark.parametrize(("waited_for", "enough_s"), [((), 50.0), ((3,), 20.0)])
def test_where_the_curator_alone_knows_for_whom_users_give_it_the_time_after_a_restart(
    waited_for: tuple[int, ...], enough_s: float
) -> None:
    stops = Stops(10.0, curator_knows=True)
    for later_s in (0.0, 10.0, 20.0, 30.0, 40.0, 50.0):
        for peer in LIVE:
            stops.stands(peer, waited_for, 40.0 + later_s)
        assert stops.stands_still(LIVE, 40.0 + later_s) is (later_s >= enough_s)
    stops.stands(CURATOR, [3], 91.0)
    assert stops.stands_still(LIVE, 91.0)


def test_half_of_the_users_are_believed_after_long_while_the_others_say_nothing() -> None:
    stops, live = Stops(10.0), frozenset(range(4))
    for at_s in range(40, 121, 10):
        stops.stands(0, [], float(at_s))
        assert not stops.stands_still(live, float(at_s))
        stops.stands(1, [], float(at_s))
        assert stops.stands_still(live, float(at_s)) is (at_s == 120)


def test_a_complaint_that_ends_a_run_is_not_hidden_by_one_that_does_not() -> None:
    stops = Stops(10.0)
    stops.disputed(1, 2, 3.0, needless=True)
    assert stops.wake_at_s is None
    stops.disputed(1, 2, 4.0, needless=False)
    stops.disputed(1, 2, 9.0, needless=False)
    assert stops.wake_at_s == 14.0
    assert stops.due(14.0) is not None


def test_only_whom_the_curator_misses_and_who_says_that_it_misses_nobody_is_put_out() -> None:
    stops = Stops(10.0)
    stops.stands(CURATOR, [1, 2, 3, 9], 25.0)
    stops.stands(1, [2], 25.0)
    stops.stands(2, [], 25.0)
    assert stops.withholding(LIVE, 25.0) == [2], "3 said nothing, which a liar may have caused; 9 is out"
    assert Stops(10.0).withholding(LIVE, 25.0) == []


def test_a_standstill_names_whom_others_waited_for_and_who_waited_for_nobody() -> None:
    stops = Stops(10.0)
    for peer, waits_for in ((1, [2]), (2, [3]), (4, [3]), (3, []), (5, [])):
        stops.stands(peer, waits_for, 25.0)
    assert stops.standstill(LIVE, 25.0) == Stopped(STANDSTILL, [[3, 2, 4]])
    stops.stands(3, [2], 26.0)
    assert stops.standstill(LIVE, 26.0) == Stopped(STANDSTILL, [[2, 1, 3], [3, 2, 4]]), "in a circle all are named"


def test_a_standstill_names_by_older_words_too_but_not_by_very_old_ones() -> None:
    """The user that waits for the liar said so, and what it said later was lost; everybody else waits for nobody."""
    stops = Stops(10.0)
    stops.stands(1, [2], 20.0)
    for peer, waits_for in ((2, []), (3, []), (4, []), (CURATOR, [1])):
        stops.stands(peer, waits_for, 45.0)
    assert stops.standstill(LIVE, 45.0) == Stopped(STANDSTILL, [[2, 1]])
    assert stops.withholding(LIVE, 45.0) == [], "to put somebody out its words have to be new"
    for peer, waits_for in ((2, []), (3, []), (4, []), (CURATOR, [1])):
        stops.stands(peer, waits_for, 61.0)
    assert stops.standstill(LIVE, 61.0) == Stopped(STANDSTILL, [[1, CURATOR]])


def test_older_words_of_whom_nobody_waits_for_name_nobody() -> None:
    """It may have gone on since: who moves again says nothing of that."""
    stops = Stops(1.0)
    stops.stands(5, [3], 10.0)
    for quarter in range(13):
        for user in (0, 1, 2, 3, 4):
            stops.stands(user, [], 10.5 + quarter / 4)
    assert stops.standstill(frozenset(range(6)), 13.5) == Stopped(STANDSTILL, [])


def test_few_who_name_somebody_do_not_take_the_curators_time_away() -> None:
    stops, live = Stops(1.0, curator_knows=True), frozenset(range(8))
    for at_s in range(10, 16):
        for user in live:
            stops.stands(user, [3] if user < 2 else [], float(at_s))
        assert stops.stands_still(live, float(at_s)) is (at_s == 15)


def test_too_few_names_who_is_out() -> None:
    assert too_few([3, 1]).concerned == [[1], [3]]
