from __future__ import annotations

from p2pdp.web.metrics import metrics_text
from tests.support.metrics import samples
from tests.support.shown import BEGAN_S, NOW_S, first, over


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
