from __future__ import annotations

from typing import Any

import pytest

from p2pdp.bench import audit as module
from p2pdp.bench.audit import GRAPHS, bench_audit, measure_audit
from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.files.spec import parse_spec
from tests.support.gossips import gossip


@pytest.mark.parametrize("graph", GRAPHS)
def test_all_ordered_pairs_count(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(text: str) -> dict[str, Any]:
        asked.append(parse_spec(text, None))
        return {"seconds": 2.0, "peak_mib": 100.0}

    monkeypatch.setattr(module, "measure_audit", measure)
    measured = bench_audit(16, 5, graph)
    assert measured == {
        "nodes": 16, "pairs": 240, "seconds": 2.0, "peak_mib": 100.0, "graph": graph, "rounds": 5,
    }  # fmt: skip
    assert (asked[0].run.nodes, asked[0].graph.kind, asked[0].run.audit) == (16, graph, False)


@pytest.mark.parametrize(
    ("terms", "says"),
    [((12,), "power of two"), ((16, 0), "--rounds"), ((1,), "--nodes"), ((16, 4, "tree"), "--graph tree")],
)
def test_what_cannot_be_measured_is_refused(terms: tuple[Any, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_audit(*terms)


def test_a_run_is_audited_in_a_process_of_its_own() -> None:
    measured = measure_audit(gossip(8, "hypercube", "rounds = 3"))
    assert measured["seconds"] > 0.0
    assert measured["peak_mib"] > 10.0


def test_why_it_failed_is_told() -> None:
    with pytest.raises(RunFailed, match=r"the benchmark failed: .*rounds"):
        measure_audit(gossip(8, "hypercube", "rounds = -3"))
