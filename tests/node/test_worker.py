from __future__ import annotations

import threading

from p2pdp.node.worker import working

GUARD_S = 20.0


def test_the_work_is_done_after_the_last_nudge_however_often_somebody_nudges() -> None:
    state = 0
    seen: list[int] = []
    with working(lambda: seen.append(state), 0.001) as nudge:
        for state in range(1, 200):  # noqa: B007 - the work reads it
            nudge()
    assert seen[-1] == 199


def test_nudges_during_the_work_are_one_more_time() -> None:
    entered, go_on, done = threading.Event(), threading.Event(), []

    def work() -> None:
        entered.set()
        go_on.wait(GUARD_S)
        done.append(None)

    with working(work, 1000.0) as nudge:
        nudge()
        assert entered.wait(GUARD_S)
        for _ in range(50):
            nudge()
        go_on.set()
    assert 2 <= len(done) <= 3


def test_no_thread_is_left() -> None:
    with working(lambda: None, 1000.0):
        assert threads() == 1
    assert threads() == 0


def threads() -> int:
    return sum(thread.name == "worker" for thread in threading.enumerate())
