from __future__ import annotations

import math

import pytest

from p2pdp.experiments.figures.gossip_distances import joined
from tests.support.small_figures import Run


def test_the_far_side_of_the_hypercube_is_exposed() -> None:
    run = Run("004-fig1a")
    cube = [row for row in run.rows() if row[0] == "hypercube"]
    assert [row[4] for row in cube] == pytest.approx([7 / math.comb(7, k) for k in range(1, 7)] + [1.0], abs=1e-9)
    assert run.line("hypercube: largest difference").ours == pytest.approx(0.0, abs=1e-9)
    for what, line in run.lines.items():
        if "mean leak less" in what:
            assert line.ours == pytest.approx(0.0, abs=1e-5)  # raised by what rounding may hide here
    assert run.line("hypercube: exact leak exceeds").ours == 928


def test_parts_are_joined_by_distance() -> None:
    rest = {"observers": 1, "rank_sum": 2, "leak_sum": 1.0, "exceeded": 0, "checked": [2], "proved": [2], "rounds": 3}
    ends = {f"{name}_{end}": [0.5] for name in ("exact", "printed") for end in ("least", "mean", "most")}
    one = {"distances": [1], "pairs": [2], **ends, **rest}
    other = {"distances": [1, 2], "pairs": [2, 4], **{name: [1.0, 0.25] for name in ends}, **rest}
    found = joined([one, other])
    assert found["pairs"] == [4, 4]
    assert found["exact_mean"] == [0.75, 0.25]
    assert found["exact_least"] == [0.5, 0.25]
    assert found["observers"] == 2


def test_hypercubes_of_all_sizes_leak_alike() -> None:
    run = Run("004-fig3")
    for m, _, distance, _, exact in run.rows():
        assert exact == pytest.approx(1.0 if distance == m else m / math.comb(m, distance), abs=1e-9)
    assert run.line("opposite").ours == pytest.approx(1.0)
