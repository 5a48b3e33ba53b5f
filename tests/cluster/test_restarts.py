from __future__ import annotations

import signal

from p2pdp.cluster.restarts import RESTARTS_MAX, SETTLED_S, WAIT_MAX_S, Restarts


def test_waits_double_until_a_process_has_settled() -> None:
    restarts = Restarts()
    waits = [restarts.wait_s(3, 1, 0.1) for _ in range(9)]
    assert waits[:4] == [0.0, 0.05, 0.1, 0.2]
    assert waits[-1] == WAIT_MAX_S
    assert restarts.wait_s(3, 1, SETTLED_S) == 0.0
    assert restarts.wait_s(4, 1, 0.1) == 0.0  # another process has nothing to do with it


def test_a_process_that_fails_by_itself_is_given_up() -> None:
    restarts = Restarts()
    waits = [restarts.wait_s(0, 1, 0.1) for _ in range(RESTARTS_MAX + 1)]
    assert None not in waits[:-1]
    assert waits[-1] is None


def test_one_that_is_killed_comes_back_as_often_as_that_happens() -> None:
    restarts = Restarts()
    assert all(restarts.wait_s(0, -signal.SIGKILL, 0.1) is not None for _ in range(5 * RESTARTS_MAX))
