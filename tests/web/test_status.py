from __future__ import annotations

from p2pdp.core.happenings import happening
from tests.support.shown import BEGAN_S, NOW_S, first, over


def test_a_run_goes_through_its_states_and_never_back() -> None:
    status = over()
    assert (status.state, status.enrolled, status.n, status.ready, status.excluded) == ("done", 3, 3, 2, (2,))
    assert status.after(happening("roster", n=3), NOW_S).state == "done"


def test_whoever_does_not_listen_yet_is_not_ready() -> None:
    assert not first().is_ready
    assert first("node").after(happening("reachable"), NOW_S).is_ready
    assert over().is_ready


def test_seconds_are_told_for_each_state_that_was_entered() -> None:
    status = first().after(happening("listening", how="h", tokens=3, address="a", folder="f"), BEGAN_S + 5.0)
    status = status.after(happening("roster", n=3), BEGAN_S + 25.0)
    assert status.seconds_in(BEGAN_S + 31.0) == {"starting": 5.0, "enrolling": 20.0, "gathering": 6.0}
    assert first().seconds_in(BEGAN_S - 3.0) == {"starting": 0.0}, "a clock that went back"


def test_an_exclusion_that_is_told_again_counts_once_and_a_block_ends_with_the_result() -> None:
    status = first().after(happening("excluded", user=1), NOW_S).after(happening("excluded", user=1), NOW_S)
    assert status.excluded == (1,)
    blocked = status.after(happening("blocked", user="curator"), NOW_S)
    assert blocked.to_json(NOW_S)["blocked_by"] == "curator"
    assert blocked.after(happening("published"), NOW_S).blocked_by is None


def test_participants_read_neither_durations_nor_faults_nor_who_blocks() -> None:
    status = over().counted(2, {"a": 1})
    assert status.to_json(NOW_S).keys() - status.for_participants().keys() == {"seconds", "faults", "blocked_by"}


def test_counts_and_a_seat_are_taken_over() -> None:
    assert first().counted(2, {"a": 1}).to_json(NOW_S)["faults"] == {"a": 1}
    same = first()
    assert same.counted(0, {}) is same
    seated = first("node").after(happening("seat", user=1, n=3), NOW_S)
    assert (seated.user, seated.n, seated.state) == (1, 3, "running")
