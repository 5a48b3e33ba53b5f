from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.host.dues import Dues


def dues_of() -> Dues:
    return Dues(1.0)


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
    assert dues.ripe(6.0) == [1, 3]
    assert (dues.tick_at_s, dues.ripe(6.26)) == (6.26, [2, 4])
    assert dues.tick_at_s is None


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
            assert all(at_s - since_s[ripe] <= 1.0 + 1e-9 for ripe in dues.ripe(at_s))
        dues.owe(peer, now_s)
