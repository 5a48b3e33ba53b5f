from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.host.dues import Dues


def dues_of() -> Dues:
    return Dues(1.0)


def test_a_debt_is_due_at_the_last_moment_of_the_clock_within_a_tick() -> None:
    for since_s, due_s in ((5.0, 6.0), (5.1, 6.0), (5.24, 6.0), (5.25, 6.25), (5.9, 6.75)):
        dues = dues_of()
        dues.owe(1, since_s)
        dues.owe(1, since_s + 0.3)
        assert (dues.tick_at_s, dues.since_s) == (due_s, {1: since_s})
        assert (dues.ripe(due_s - 0.001), dues.tick_at_s) == ([], due_s)
        assert (dues.ripe(due_s), dues.tick_at_s) == ([1], None)


def test_those_of_one_moment_are_told_together_and_the_rest_at_the_next() -> None:
    dues = dues_of()
    for peer, now_s in ((3, 5.0), (1, 5.2), (2, 5.26), (4, 5.5)):
        dues.owe(peer, now_s)
    assert (dues.tick_at_s, dues.ripe(6.0)) == (6.0, [1, 3])
    assert (dues.tick_at_s, dues.ripe(6.25)) == (6.25, [2])
    assert (dues.tick_at_s, dues.ripe(7.0), dues.tick_at_s) == (6.5, [4], None)


@given(st.lists(st.tuples(st.integers(2, 5), st.floats(0.0, 3.0)), max_size=20), st.floats(0.0, 3.0))
def test_when_one_peer_is_told_does_not_depend_on_the_others(others: list[tuple[int, float]], mine_s: float) -> None:
    """Else the moment of an acknowledgement would tell its receiver when somebody else sent something."""
    told_s = []
    for debts in ([(1, mine_s)], [*others, (1, mine_s)]):
        dues = dues_of()
        coming = sorted(debts, key=lambda debt: debt[1])
        while coming or dues.tick_at_s is not None:
            if dues.tick_at_s is None or (coming and coming[0][1] < dues.tick_at_s):
                dues.owe(*coming.pop(0))
            elif 1 in dues.ripe(at_s := dues.tick_at_s):
                told_s.append(at_s)
    assert len(told_s) == 2
    assert told_s[0] == told_s[1]


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
