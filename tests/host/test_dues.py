from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import Custody
from p2pdp.host.custody import Guardian
from p2pdp.host.dues import Dues
from p2pdp.host.link import Link
from p2pdp.host.payloads import REPORTED_MAX

ME = 9


def dues_of(guardian: Guardian | None = None) -> Dues:
    return Dues(ME, guardian or Guardian(), 1.0, 4.0)


def test_the_first_debt_sets_the_tick_and_later_ones_leave_it() -> None:
    dues = dues_of()
    dues.owe(1, 5.0)
    dues.owe(2, 5.7)
    dues.owe(1, 5.9)
    assert (dues.tick_at_s, dues.since_s) == (6.0, {1: 5.0, 2: 5.7})


def test_a_tick_takes_what_is_nearly_as_old_as_it_may_become_and_leaves_the_rest_for_the_next() -> None:
    dues = dues_of()
    for peer, now_s in ((3, 5.0), (1, 5.25), (2, 5.26), (4, 5.5)):
        dues.owe(peer, now_s)
    assert dues.ripe({}, 6.0) == [1, 3]
    assert (dues.tick_at_s, dues.ripe({}, 6.26)) == (6.26, [2, 4])
    assert (dues.tick_at_s, dues.ripe({}, 9.0), dues.tick_at_s) == (9.0, [], None)  # what settled was due by then


def test_in_the_end_everybody_is_told() -> None:
    dues = dues_of()
    dues.owe(4, 5.0)
    dues.owe(1, 5.0)
    assert (dues.all(), dues.tick_at_s, dues.all()) == ([1, 4], None, [])


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.0, 10.0)), max_size=40))
def test_nothing_waits_longer_than_it_may(debts: list[tuple[int, float]]) -> None:
    dues = dues_of()
    for peer, now_s in sorted(debts, key=lambda debt: debt[1]):
        while dues.tick_at_s is not None and dues.tick_at_s <= now_s:
            at_s, since_s = dues.tick_at_s, dict(dues.since_s)
            assert all(at_s - since_s[ripe] <= 1.0 + 1e-9 for ripe in dues.ripe({}, at_s))
        dues.owe(peer, now_s)


def passed_on(guardian: Guardian, item: int, step: int) -> None:
    """Took an item from peer 1 and passed it to peer 2, in link message 1."""
    guardian.received(Custody(item, step), 1)
    guardian.passed(Custody(item, step + 1), 2, 1, 0.0)


def test_what_an_acknowledgement_settles_is_worked_out_when_it_is_asked_for() -> None:
    guardian, links = Guardian(), {2: Link(2)}
    dues = dues_of(guardian)
    passed_on(guardian, 7, 3)
    links[2].acknowledged = 1
    dues.take_news(links, 4.0)
    assert dues.since_s == {}
    dues.progressed.add(2)
    dues.take_news(links, 5.0)
    assert (links[1].settled, dues.since_s, dues.progressed) == ({7: 3}, {1: 5.0}, set())


def test_numbers_that_fit_into_no_report_and_reports_to_oneself_are_dropped() -> None:
    guardian, links = Guardian(), {2: Link(2)}
    dues = dues_of(guardian)
    for item, step in ((-1, 3), (REPORTED_MAX + 1, 3), (3, -1), (4, REPORTED_MAX + 1)):
        passed_on(guardian, item, step)
    guardian.received(Custody(5, 1), ME)
    guardian.passed(Custody(5, 2), 2, 1, 0.0)
    links[2].acknowledged = 1
    dues.progressed.add(2)
    dues.take_news(links, 5.0)
    assert (dues.since_s, sorted(links)) == ({}, [2])


def test_what_settles_waits_for_its_own_time_and_gathers_until_then() -> None:
    guardian, links = Guardian(), {2: Link(2)}
    dues = dues_of(guardian)
    passed_on(guardian, 7, 3)
    links[2].acknowledged = 1
    dues.progress(2, 5.0)
    dues.owe(3, 5.5)
    assert (dues.ripe(links, 6.5), links[2].settled, dues.tick_at_s) == ([3], {}, 9.0)
    dues.progress(2, 8.0)
    assert (dues.ripe(links, 9.0), links[1].settled, dues.since_s, dues.tick_at_s) == ([], {7: 3}, {1: 9.0}, 10.0)


def test_what_settles_is_reported_soon_where_somebody_compares_numbers() -> None:
    guardian, links = Guardian(), {2: Link(2)}
    dues = dues_of(guardian)
    passed_on(guardian, 7, 3)
    links[2].acknowledged = 1
    dues.progress(2, 5.0)
    dues.progress(2, 5.5, soon=True)
    assert dues.tick_at_s == 6.5
    dues.ripe(links, 6.5)
    assert links[1].settled == {7: 3}
