from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import Custody
from p2pdp.host.custody import Guardian


def holder() -> Guardian:
    """Took item 7 at step 3 from peer 1 and passed it to peer 2, in link message 5."""
    guardian = Guardian()
    guardian.received(Custody(7, 3), 1)
    guardian.passed(Custody(7, 4), 2, 5, 10.0)
    assert guardian.take_reports() == []
    return guardian


def acknowledged(guardian: Guardian, peer: int, number: int) -> list[tuple[int, int, int]]:
    """The reports that follow from it."""
    guardian.acknowledged(peer, number)
    return guardian.take_reports()


def test_whoever_passes_an_item_on_watches_its_holder() -> None:
    (watch,) = holder().watches.values()
    assert (watch.item, watch.step, watch.peer, watch.number) == (7, 4, 2, 5)
    assert (watch.since_s, watch.complained) == (10.0, False)


def test_the_guardian_before_hears_once_that_the_successor_has_it() -> None:
    guardian = holder()
    assert acknowledged(guardian, 2, 4) == []
    assert acknowledged(guardian, 3, 9) == []
    assert acknowledged(guardian, 2, 5) == [(1, 7, 3)]
    assert acknowledged(guardian, 2, 6) == []


def test_an_acknowledged_item_is_still_watched_until_its_holder_reports() -> None:
    guardian = holder()
    guardian.acknowledged(2, 5)
    assert list(guardian.watches) == [7]
    guardian.settled(3, 7, 4)  # not its holder
    guardian.settled(2, 8, 4)  # another item
    guardian.settled(2, 7, 3)  # an earlier visit of the same holder
    assert list(guardian.watches) == [7]
    guardian.settled(2, 7, 4)
    assert guardian.watches == {}


def test_a_lost_report_can_be_asked_for_again() -> None:
    guardian = holder()
    assert guardian.settled_for(1) == []
    guardian.acknowledged(2, 5)
    assert guardian.settled_for(1) == guardian.settled_for(1) == [(7, 3)]
    assert guardian.settled_for(2) == []


def test_an_item_that_comes_round_ends_the_watch_and_settles_the_earlier_visit() -> None:
    guardian = holder()
    guardian.received(Custody(7, 6), 3)
    assert (guardian.take_reports(), guardian.watches) == ([(1, 7, 3)], {})
    guardian.passed(Custody(7, 7), 1, 1, 20.0)
    assert acknowledged(guardian, 1, 1) == [(3, 7, 6)]


def test_of_visits_that_settled_between_two_reports_a_guardian_hears_the_last() -> None:
    guardian = holder()
    for step in (6, 9):
        guardian.received(Custody(7, step), 1)
        guardian.passed(Custody(7, step + 1), 2, step, 20.0)
    assert acknowledged(guardian, 2, 9) == [(1, 7, 9)]


def test_the_starter_of_an_item_has_nobody_to_report_to() -> None:
    guardian = Guardian()
    guardian.passed(Custody(1, 1), 2, 1, 0.0)
    assert acknowledged(guardian, 2, 1) == []


def test_an_item_is_dismissed_up_to_the_step_that_is_known_to_have_gone_on() -> None:
    guardian = holder()
    guardian.dismiss(7, 3)
    assert list(guardian.watches) == [7]
    guardian.dismiss(7, 4)
    guardian.dismiss(9, 1)
    assert guardian.watches == {}


def test_who_is_spared_gets_patience_anew_and_others_do_not() -> None:
    guardian = holder()
    guardian.passed(Custody(8, 1), 3, 1, 10.0)
    for watch in guardian.watches.values():
        watch.complained = True
    guardian.spare(2, 30.0)
    assert [(w.since_s, w.complained) for w in guardian.watches.values()] == [(30.0, False), (10.0, True)]


def test_after_a_restart_patience_begins_anew() -> None:
    guardian = holder()
    guardian.begin_anew(99.0)
    assert guardian.watches[7].since_s == 99.0


def test_a_new_guardian_takes_the_place_of_one_that_is_out() -> None:
    guardian = holder()
    guardian.adopted(7, 3, -1)
    assert acknowledged(guardian, 2, 5) == [(-1, 7, 3)]
    guardian.adopted(7, 3, -1)  # settled already
    guardian.adopted(9, 3, -1)  # never here, or long gone on
    assert guardian.take_reports() == [(-1, 7, 3), (-1, 9, 3)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=150))
def test_hops_that_gather_come_to_the_same_as_if_each_were_told_at_once(
    events: list[tuple[int, int, int, int]],
) -> None:
    gathered, direct = Guardian(), Guardian()
    for step, (item, sender, to, what) in enumerate(events):
        taken, given_on = Custody(item, 2 * step), Custody(item, 2 * step + 1)
        gathered.hops.append((taken, sender, given_on, to, step, float(step)))
        direct.received(taken, sender)
        direct.passed(given_on, to, step, float(step))
        for guardian in (gathered, direct):
            if what == 0:
                guardian.acknowledged(to, step - 1)
            elif what == 1:
                guardian.settled(to, item, 2 * step)
            elif what == 2:
                guardian.adopted(item, 2 * step, -1)
            elif what == 3:
                guardian.dismiss(item, 2 * step)
        if what == 4:
            assert gathered.take_reports() == direct.take_reports()
        elif what == 5:
            assert gathered.settled_for(sender) == direct.settled_for(sender)
    assert gathered.watches == direct.watches
    assert gathered.take_reports() == direct.take_reports()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=60))
def test_memory_is_one_entry_an_item(events: list[tuple[int, int, bool]]) -> None:
    guardian = Guardian()
    for step, (item, peer, passes) in enumerate(events):
        if passes:
            guardian.passed(Custody(item, step), peer, step, float(step))
        else:
            guardian.received(Custody(item, step), peer)
    assert len(guardian.watches) <= 4
    assert len(guardian._origins) <= 4
