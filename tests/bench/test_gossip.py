"""A benchmark forks, so it is measured in a process of its own (`tests/cli/test_bench.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.bench import gossip as module
from p2pdp.bench.gossip import bench_gossip, is_exchange, seconds_between
from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import read
from tests.support.gossips import gossip
from tests.support.runs import quiet


def test_rates_are_those_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(text: str) -> dict[str, Any]:
        asked.append(parse_spec(text, None))
        return {
            "seconds": 2.0,
            "exchanges": 800,
            "cpu_seconds": 0.4,
            "seconds_until_enrolled": 1.0,
            "seconds_in_all": 4.0,
        }

    monkeypatch.setattr(module, "measure_gossip", measure)
    measured = bench_gossip(10, 4, 20)
    assert measured == {
        "transport": "tcp", "nodes": 10, "degree": 4, "rounds": 20, "rounds_per_second": 10.0,
        "messages_per_second": 400.0, "cpu_us_per_message": pytest.approx(500.0),
        "seconds": 2.0, "seconds_until_enrolled": 1.0, "seconds_in_all": 4.0,
    }  # fmt: skip
    (spec,) = asked
    assert (spec.run.nodes, spec.run.transport, spec.graph.kind, spec.graph.degree) == (10, "tcp", "regular", 4)
    assert spec.options.rounds == 20


@pytest.mark.parametrize(("nodes", "degree", "rounds", "says"), [
    (16, 4, 0, "--rounds 0"), (4, 4, 9, "--degree 4"), (5, 3, 9, "product even"), (9, 1, 9, "--degree 1"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(nodes: int, degree: int, rounds: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_gossip(nodes, degree, rounds)


def test_rounds_last_from_the_first_to_go_to_the_last_result() -> None:
    run = quiet(gossip(6, "ring", "rounds = 5"))
    users = [read(bytes(run.world.processes[user].disk.view)).records for user in range(6)]
    assert sum(is_exchange(record) for records in users for record in records) == 2 * 6 * 5
    seconds = seconds_between(users)
    assert 5 * 0.001 <= seconds <= run.world.now_s  # a message takes a millisecond there
    assert seconds_between(users[:3]) <= seconds
    with pytest.raises(RunFailed, match="1 users did not come to a result"):
        seconds_between([*users, []])
