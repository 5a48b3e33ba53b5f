"""`messages` of plan, simulation and fast path is one number: what users send each other.

Every sample and every small spec of `frozen.py` is looked at. A simulated run counts what its ledgers record, so a live
run, whose ledgers are read by the same function, counts alike. Where chance decides, the others are the expectation, or
draws around it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.spec import Spec
from tests.contracts.frozen import specs

SPECS = specs()
SEEDS = range(100, 108)
FIXED = {"pairwise.sum", "gossip.randomized"}


def is_fixed(spec: Spec) -> bool:
    """Whether the spec alone says how many messages there are."""
    protocol, own = spec.run.protocol, spec.options
    if protocol.startswith("walk."):
        return bool(own.order == "ring")
    if protocol.startswith("shuffle."):
        return bool(own.stay == 0.0) and spec.graph.kind != "complete"
    return protocol in FIXED or not spec.graph.changing


def on_seed(spec: Spec, seed: int) -> Spec:
    return replace(spec, run=replace(spec.run, seed=seed, audit=False))


def counted(spec: Spec, *, fast: bool) -> list[int]:
    found = [p2pdp.simulate(on_seed(spec, seed), fast=fast).messages for seed in SEEDS[: 2 if is_fixed(spec) else None]]
    return [one for one in found if one is not None]


def expected(spec: Spec) -> list[int]:
    """The plan's number on each seed: a random graph is another one each time."""
    return [p2pdp.plan(on_seed(spec, seed)).messages for seed in SEEDS[:2]]


@pytest.mark.parametrize("name", SPECS)
def test_plan_simulation_and_fast_path_count_the_same(name: str) -> None:
    spec = SPECS[name]
    simulated, fast, planned = counted(spec, fast=False), counted(spec, fast=True), expected(spec)
    if is_fixed(spec):
        assert simulated == fast == planned
        return
    for found in (simulated, fast):
        spread = max(statistics.stdev(simulated), 1.0) / math.sqrt(len(found))
        assert abs(statistics.mean(found) - statistics.mean(planned)) <= 4.5 * spread + 1.0, (found, planned)


def test_both_kinds_are_looked_at() -> None:
    fixed = [is_fixed(spec) for spec in SPECS.values()]
    assert sum(fixed) >= 10
    assert len(fixed) - sum(fixed) >= 5


@pytest.mark.parametrize("name", ["small:ring", "small:average", "small:randomized", "small:single"])
def test_a_live_run_counts_the_same(name: str, tmp_path: Path) -> None:
    spec = SPECS[name]
    live = p2pdp.run(replace(spec, run=replace(spec.run, transport="memory")), tmp_path / "run").messages
    assert live == p2pdp.plan(spec).messages == p2pdp.simulate(spec).messages
