from __future__ import annotations

import signal

from p2pdp.cluster.children import CRASHED, INTERRUPTED
from p2pdp.cluster.restarts import RESTARTS_MAX, SETTLED_S, WAIT_MAX_S, Restarts


def test_the_first_restart_is_at_once_and_waits_double_to_a_limit() -> None:
    restarts = Restarts()
    waits = [restarts.wait_s(3, CRASHED, 0.1) for _ in range(9)]
    assert waits == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, WAIT_MAX_S, WAIT_MAX_S]
    assert restarts.wait_s(4, CRASHED, 0.1) == 0.0


def test_who_lived_for_long_is_started_at_once_again() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.wait_s(3, CRASHED, 0.1)
    assert restarts.wait_s(3, CRASHED, SETTLED_S) == 0.0
    assert restarts.wait_s(3, CRASHED, 0.1) == 0.05


def test_who_fails_by_itself_again_and_again_is_given_up() -> None:
    restarts = Restarts()
    assert None not in [restarts.wait_s(3, CRASHED, SETTLED_S) for _ in range(RESTARTS_MAX)]
    assert restarts.wait_s(3, CRASHED, SETTLED_S) is None
    assert restarts.wait_s(2, CRASHED, SETTLED_S) == 0.0


def test_who_is_killed_is_not_given_up() -> None:
    restarts = Restarts()
    for code in (-signal.SIGKILL, -signal.SIGTERM, INTERRUPTED):
        assert None not in [restarts.wait_s(3, code, 0.0) for _ in range(2 * RESTARTS_MAX)]
    assert None in [restarts.wait_s(3, -signal.SIGSEGV, 0.0) for _ in range(2 * RESTARTS_MAX)]
