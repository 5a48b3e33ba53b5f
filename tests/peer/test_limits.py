from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.peer.limits import BYTES, MESSAGES, QUESTIONS, REPEATS, RESENDS, WRONG, Limits, Rate

RATES = [QUESTIONS, RESENDS, REPEATS, WRONG, MESSAGES, BYTES]


@pytest.mark.parametrize("rate", RATES)
def test_a_burst_is_granted_and_then_the_rate(rate: Rate) -> None:
    limits, amount = Limits(0), rate.burst / 64
    assert sum(limits.grants(1, rate, 5.0, amount) for _ in range(1000)) == 64
    later_s = 5.0 + 3 * amount / rate.per_s + 1e-6
    assert sum(limits.grants(1, rate, later_s, amount) for _ in range(1000)) == pytest.approx(3, abs=1)
    assert sum(limits.grants(1, rate, 1e9, amount) for _ in range(1000)) == 64, "no more than a burst is saved up"


def test_peers_and_demands_are_counted_apart() -> None:
    limits = Limits(0)
    while limits.grants(1, RESENDS, 0.0):
        pass
    assert limits.grants(2, RESENDS, 0.0)
    assert limits.grants(1, QUESTIONS, 0.0)
    assert limits.takes(1, 100, 0.0)


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 40.0)), max_size=60), st.sampled_from(RATES))
def test_what_is_granted_is_bounded_over_any_time(demands: list[tuple[float, float]], rate: Rate) -> None:
    limits, now_s, granted = Limits(0), 0.0, 0.0
    for gap_s, amount in demands:
        now_s += gap_s
        granted += amount if limits.grants(1, rate, now_s, amount) else 0.0
        assert granted <= rate.burst + rate.per_s * now_s + 40.0 + 1e-6


def test_whose_messages_are_refused_is_slowed_and_nobody_else() -> None:
    limits, taken, now_s = Limits(3), 0, 0.0
    for step in range(60_000):  # a minute, a message a millisecond
        now_s = step / 1000
        if limits.takes(1, 70, now_s):
            taken += 1
            limits.refused(1, now_s)
        assert limits.takes(2, 70, now_s)
    assert taken == pytest.approx(WRONG.burst + 60 * WRONG.per_s, abs=2)
    assert not limits.takes(1, 70, now_s)
    assert limits.takes(1, 70, now_s + 1.0)


def test_users_messages_to_each_other_have_no_limit_and_those_to_a_role_do() -> None:
    assert all(Limits(0).takes(1, 1 << 20, 0.0) for _ in range(100_000))
    for me in (BOOTSTRAP, CURATOR):
        limits = Limits(me)
        assert sum(limits.takes(1, 70, 0.0) for _ in range(10_000)) == MESSAGES.burst
        assert all(limits.takes(other(me), 70, 0.0) for _ in range(10_000)), "roles trust each other"
        assert sum(limits.takes(2, 1 << 24, 0.0) for _ in range(10_000)) == BYTES.burst / (1 << 24)


def other(me: Peer) -> Peer:
    return CURATOR if me == BOOTSTRAP else BOOTSTRAP
