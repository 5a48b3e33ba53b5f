from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.runs import bench_gossip as module
from p2pdp.runs.bench_gossip import bench_gossip


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
    assert spec.gossip is not None
    assert spec.gossip.rounds == 20


@pytest.mark.parametrize(("nodes", "degree", "rounds", "says"), [
    (16, 4, 0, "--rounds 0"), (4, 4, 9, "--degree 4"), (5, 3, 9, "product even"), (9, 1, 9, "--degree 1"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(nodes: int, degree: int, rounds: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_gossip(nodes, degree, rounds)
