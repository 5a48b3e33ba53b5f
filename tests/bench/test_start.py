"""A benchmark forks, so it is measured in a process of its own (`tests/cli/test_bench.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p2pdp.bench import start as module
from p2pdp.bench.start import DEGREE, bench_start
from p2pdp.cluster.layout import Packing
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec


def test_what_is_started_is_a_sparse_run_of_so_many_nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def measure(text: str, packing: Packing, *, whole_process: bool) -> dict[str, Any]:
        asked.append((parse_spec(text, tmp_path), packing, whole_process))
        return {"seconds": 1.5, "private_mib_per_node": 4.0}

    monkeypatch.setattr(module, "measure_start", measure)
    measured = bench_start(200, 4, spawn=True)
    ((spec, packing, whole),) = asked
    assert (spec.run.nodes, spec.run.transport, spec.graph.kind, spec.graph.degree) == (200, "tcp", "regular", DEGREE)
    assert (packing, whole) == (Packing(4, spawn=True), False)
    assert measured == {
        "nodes": 200,
        "seconds": 1.5,
        "private_mib_per_node": 4.0,
        "nodes_per_process": 4,
        "spawn": True,
        "graph": "regular",
        "degree": DEGREE,
    }


def test_a_graph_of_that_degree_needs_more_nodes() -> None:
    with pytest.raises(UsageError, match="--nodes 10: must be more than 10"):
        bench_start(10)
    with pytest.raises(UsageError, match="nodes-per-process 0"):
        bench_start(20, 0)
