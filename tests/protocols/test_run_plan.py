from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from p2pdp.core.errors import RunFailed, UsageError, VerificationFailed
from p2pdp.core.spec import GraphPart
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import plan_of_facts, plan_run
from tests.support.walk_world import histogram_spec, sum_spec


@pytest.mark.parametrize("spec", [sum_spec(n=5), sum_spec(n=5, hops=9, kind="path"), histogram_spec(n=5, hops=9)])
def test_every_peer_makes_the_same_plan(spec: Any) -> None:
    first, second = plan_run(spec, 5, 1), plan_run(spec, 5, 1)
    assert first.plan == second.plan
    assert first.facts == second.facts
    assert first.protocol.name == spec.run.protocol


def test_the_real_number_of_users_counts_and_not_that_of_the_spec() -> None:
    run = plan_run(sum_spec(n=5, laps=2), 4, 1)
    assert (run.n, run.plan.n, run.facts["n"]) == (4, 4, 4)
    assert run.neighbours(0) == (1, 3)


def test_facts_tell_runs_apart() -> None:
    spec = sum_spec(n=6, hops=9, kind="path")
    other_graph = dataclasses.replace(spec, graph=GraphPart("star"))
    runs = [plan_run(spec, 6, 1), plan_run(spec, 5, 1), plan_run(spec, 6, 2), plan_run(other_graph, 6, 1)]
    runs.append(plan_run(spec, 6, 1, sampler="seeded"))
    assert len({tuple(sorted(run.facts.items())) for run in runs}) == 5
    assert plan_run(spec, 6, 1).facts["sampler"] == "exact"


def test_on_a_complete_graph_nobody_needs_a_list_of_neighbours() -> None:
    assert plan_run(sum_spec(n=5, hops=9), 5, 1).neighbours(2) is None
    assert plan_run(sum_spec(n=5, hops=9, kind="path"), 5, 1).neighbours(2) == (1, 3)


def test_on_a_graph_that_changes_everybody_may_meet_everybody_and_nobody_knows_the_graphs() -> None:
    text = (
        '[run]\nprotocol = "gossip.average"\nnodes = 9\n[graph]\nkind = "erdos_renyi"\nprobability = 0.25\n'
        'changing = true\n[gossip]\nrounds = 8\nlambda = 0.4\n[noise]\nmechanism = "gaussian"\nsigma = 1.0\n'
        '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[privacy]\ndelta = 1e-5\n'
    )
    run = plan_run(parse_spec(text, None), 9, 1)
    assert run.neighbours(3) is None
    assert (run.facts["graph"], run.facts["gap"], run.facts["degree_max"]) == ("changing", 0.4, 8)
    assert run.plan.coin == 0.25
    assert run.exchanges == 2 * 36 * 8 // 4
    assert plan_of_facts(run.spec, run.facts).plan == run.plan


def test_a_random_graph_follows_the_seed_of_the_spec() -> None:
    spec = dataclasses.replace(sum_spec(n=30, hops=9), graph=GraphPart("regular", degree=4))
    graphs = [
        plan_run(dataclasses.replace(spec, run=dataclasses.replace(spec.run, seed=seed)), 30, 1).facts["graph"]
        for seed in (1, 1, 2)
    ]
    assert graphs[0] == graphs[1] != graphs[2]


def test_an_auditor_has_the_same_plan_from_the_facts_that_were_signed() -> None:
    spec = sum_spec(n=5, laps=2)
    run = plan_run(spec, 4, 3, sampler="seeded")
    audited = plan_of_facts(spec, run.facts)
    assert audited.plan == run.plan
    assert (audited.n, audited.dimensions, audited.sampler, audited.graph) == (4, 3, "seeded", None)


@pytest.mark.parametrize("facts", [{}, {"n": 4, "dimensions": 1}, {"n": "4", "dimensions": 1, "sampler": "exact"}])
def test_facts_that_are_missing_are_a_failed_verification(facts: Any) -> None:
    with pytest.raises(VerificationFailed, match="n, dimensions and sampler"):
        plan_of_facts(sum_spec(), facts)


def test_what_has_no_graph_or_protocol_is_refused() -> None:
    with pytest.raises(RunFailed):
        plan_run(sum_spec(n=6, hops=9, kind="hypercube"), 6, 1)
    spec = sum_spec()
    with pytest.raises(UsageError, match="protocol"):
        plan_run(dataclasses.replace(spec, run=dataclasses.replace(spec.run, protocol="walk.nothing")), 5, 1)
