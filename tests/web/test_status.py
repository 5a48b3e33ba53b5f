from __future__ import annotations

from p2pdp.core.happenings import happening
from p2pdp.web.status import metrics_text
from tests.support.metrics import samples
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
    status = first().after(
        happening("listening", how="h", tokens=3, address="a", folder="f", identity="k"), BEGAN_S + 5.0
    )
    status = status.after(happening("roster", n=3), BEGAN_S + 25.0)
    assert status.seconds_in(BEGAN_S + 31.0) == {"starting": 5.0, "enrolling": 20.0, "gathering": 6.0}
    assert first().seconds_in(BEGAN_S - 3.0) == {"starting": 0.0}, "a clock that went back"


def test_an_exclusion_that_is_told_again_counts_once_and_a_block_ends_with_the_result() -> None:
    status = first().after(happening("excluded", user=1), NOW_S).after(happening("excluded", user=1), NOW_S)
    assert status.excluded == (1,)
    blocked = status.after(happening("blocked", user="curator"), NOW_S)
    assert blocked.to_json(NOW_S)["blocked_by"] == "curator"
    assert blocked.after(happening("published"), NOW_S).blocked_by is None


def test_participants_read_neither_durations_nor_faults_nor_restarts() -> None:
    status = over().counted(2, {"a": 1})
    assert status.to_json(NOW_S).keys() - status.for_participants().keys() == {"seconds", "faults", "restarts"}


def test_who_is_silent_is_told_with_the_time_until_it_is_back_or_out_or_the_result_is_there() -> None:
    status = first().after(happening("roster", n=3), BEGAN_S)
    for user in (2, 1):
        status = status.after(happening("silent", user=user), NOW_S + user)
    assert status.for_participants()["silent"] == [
        {"user": 1, "since": "2023-11-14T22:15:01Z"},
        {"user": 2, "since": "2023-11-14T22:15:02Z"},
    ]
    found = samples(metrics_text(status, "1.2", NOW_S, None, full=False))
    assert (found["p2pdp_nodes_silent"], found["p2pdp_nodes_connected"]) == (2, 1)
    blocked = status.after(happening("blocked", user=1), NOW_S)
    assert blocked.after(happening("back", user=2), NOW_S).blocked_by == 1
    assert blocked.after(happening("back", user=1), NOW_S).blocked_by is None
    out = status.after(happening("back", user=1), NOW_S).after(happening("excluded", user=2), NOW_S)
    assert (out.silent_s, out.left) == ({}, 2)
    assert status.after(happening("published"), NOW_S).silent_s == {}


def test_whom_a_run_waits_for_is_counted_until_it_begins() -> None:
    waiting = first().after(happening("roster", n=3), NOW_S).counted(1, {}, (0, 2))
    assert waiting.for_participants()["awaited"] == [0, 2]
    assert waiting.after(happening("begun"), NOW_S).awaited == ()


def test_restarts_are_counted() -> None:
    assert first().after(happening("restarted", user=1), NOW_S).to_json(NOW_S)["restarts"] == 1


def test_counts_and_a_seat_are_taken_over() -> None:
    assert first().counted(2, {"a": 1}).to_json(NOW_S)["faults"] == {"a": 1}
    same = first()
    assert same.counted(0, {}) is same
    seated = first("node").after(happening("seat", user=1, n=3), NOW_S)
    assert (seated.user, seated.n, seated.state) == (1, 3, "running")


def test_a_bootstrap_counts_nodes_states_and_faults() -> None:
    found = samples(metrics_text(over().counted(2, {"foreign_frame": 3}), "1.2", NOW_S, 4096, full=True))
    assert found['p2pdp_state{state="done"}'] == 1
    assert found['p2pdp_state{state="running"}'] == 0
    assert found['p2pdp_state_seconds{state="done"}'] == 50.0
    assert found['p2pdp_faults_total{kind="foreign_frame"}'] == 3
    names = ("expected", "enrolled", "in_roster", "ready", "excluded")
    assert [found[f"p2pdp_nodes_{name}"] for name in names] == [3, 3, 3, 2, 1]
    assert found["process_resident_memory_bytes"] == 4096
    assert (found["process_start_time_seconds"], found["p2pdp_uptime_seconds"]) == (BEGAN_S, NOW_S - BEGAN_S)


def test_a_node_tells_less_and_labels_are_escaped() -> None:
    text = metrics_text(first("node").counted(0, {'a"\\\n': 1}), "1.2", NOW_S, None, full=True)
    assert r'p2pdp_faults_total{kind="a\"\\\n"} 1' in text
    assert "nodes" not in "".join(samples(text))
    assert "process_resident_memory_bytes" not in text


def test_participants_read_no_duration_fault_or_memory() -> None:
    status = over().counted(2, {"foreign_frame": 3})
    mine = samples(metrics_text(status, "1.2", NOW_S, 4096, full=False))
    whole = samples(metrics_text(status, "1.2", NOW_S, 4096, full=True))
    assert mine.items() < whole.items()
    left_out = {name.partition("{")[0] for name in whole.keys() - mine.keys()}
    assert left_out == {"p2pdp_state_seconds", "p2pdp_faults_total", "process_resident_memory_bytes"}


def test_nothing_counts_messages_bytes_or_hops() -> None:
    """Who collected such counters from all nodes would have the token's route."""
    names = " ".join(samples(metrics_text(over(), "1", NOW_S, 1, full=True)))
    for word in ("message", "byte_", "bytes_sent", "frame", "hop", "round", "token", "value"):
        assert word not in names
