from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.runs import bench_hops as benched
from p2pdp.runs.bench_hops import bench_hops


def stretch(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "cpu_s": 2 * seconds}


def measured(**asked: Any) -> dict[str, Any]:
    """Three pairs whose ratios are 1/2, 1/4 and 1/8, after a first one that does not count."""
    assert asked == {"tokens": 2, "hops": 50, "pairs": 3}
    growth = [{"ledger_bytes": 100.0, "private_mib": 4.0}, {"ledger_bytes": 300.0, "private_mib": None}]
    bare = [stretch(9.0), stretch(1.0), stretch(1.0), stretch(2.0)]
    real = [stretch(1.0), stretch(8.0), stretch(2.0), stretch(8.0)]
    rest = [stretch(1.0) | {"draws": draws} for draws in (30, 0, 20)]
    return {"dial_s": 0.5, "rest": rest, "real": real, "bare": bare, "growth": growth}


def test_what_counts_is_the_median_of_pairs_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benched, "measure_hops", lambda _run, _rows, **asked: measured(**asked))
    found = bench_hops(6, 101, 2, 3, "regular", 3)
    assert [pair["ratio"] for pair in found["pairs"]] == [0.125, 0.5, 0.25]
    assert (found["ratio"], found["hops_per_second"], found["bare_hops_per_second"]) == (0.25, 12.5, 100.0)
    assert (found["hops"], found["cpu_us_per_hop"], found["bare_cpu_us_per_hop"]) == (100, 160_000.0, 20_000.0)
    assert (found["cpu_us_per_draw"], found["hops_per_second_with_draws"]) == (80_000.0, 100 / 12)
    assert [pair["ratio_with_draws"] for pair in found["pairs"]] == [1 / 12, 1 / 6, 2 / 12]
    assert (found["dials"], found["dial_ms"], found["degree"]) == (9, 500 / 9, 3.0)
    assert (found["ledger_bytes_per_node"], found["private_mib_per_node"]) == (200.0, None)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"nodes": 1}, "--nodes"),
        ({"hops": 0}, "--hops"),
        ({"tokens": 0}, "--tokens"),
        ({"pairs": 0}, "--pairs"),
        ({"hops": 3, "tokens": 4}, "--hops 3"),
        ({"graph": "ring"}, "--graph ring"),
        ({"nodes": 5, "graph": "regular", "degree": 3}, "degree"),
        ({"nodes": 5, "graph": "regular", "degree": 5}, "degree"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        bench_hops(**arguments)
