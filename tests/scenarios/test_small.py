"""Whole runs without faults, from one user on: sums, vectors, histograms, one token or several."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.protocols.run_plan import plan_run
from p2pdp.sim.world import World
from tests.support.fault_worlds import HISTOGRAM, completes, ring, walk, world_of
from tests.support.run_oracle import judge

NONE = 'protocol = "walk.sum"', '[noise]\nmechanism = "none"\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]'


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("task", [HISTOGRAM, NONE, None])
def test_from_one_user_on(n: int, task: tuple[str, str] | None) -> None:
    tasks = {} if task is None else {"task": task}
    rings = [ring(n, 2, **tasks), ring(n, 3, tokens=n, **tasks)]
    for text in (*rings, walk(n, 5, **tasks), walk(n, 1, tokens=3, **tasks)):
        judged = completes(world_of(text))
        assert judged.verification.verified == "complete"


def test_tokens_of_a_ring_start_at_equal_distances_and_make_all_laps() -> None:
    judged = completes(world_of(ring(4, 2, tokens=2)))
    assert judged.path == {0: [0, 1, 2, 3] * 2, 1: [2, 3, 0, 1] * 2}


@pytest.mark.parametrize("kind", ["path", "star", "regular"])
def test_a_walk_keeps_to_the_edges_of_its_graph(kind: str) -> None:
    world = world_of(walk(6, 30, kind, tokens=2))
    judged = completes(world)
    assert world.run.graph is not None
    for path in judged.path.values():
        for here, there in pairwise(path):
            assert there in world.run.graph.neighbours[here]


def test_vectors(tmp_path: Path) -> None:
    rows = "\n".join(f"{row}.5,{-row}" for row in range(9))
    (tmp_path / "rows.csv").write_text(f"a,b\n{rows}\n", "utf-8")
    data_part = '[data]\nkind = "csv"\npath = "rows.csv"\ncolumns = ["a", "b"]\nclip = [-3.0, 3.0]\n'
    task = 'protocol = "walk.sum"', f'[noise]\nmechanism = "laplace"\nsigma = 2.0\n{data_part}'
    for text in (ring(3, 2, task), walk(3, 6, task=task)):
        spec = parse_spec(text, tmp_path)
        data = load_data(spec, 3)
        run = plan_run(spec, 3, data.dimensions, sampler="seeded")
        world = World(run, data.user, text, spec_digest(spec), 1)
        world.run_to_end()
        assert judge(world, {}).total.shape == (2,)
