from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from scipy import stats

from p2pdp.core.errors import RunFailed, UsageError, VerificationFailed
from p2pdp.core.rows import ROWS_MAX
from p2pdp.core.spec import GraphPart
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import to_skeleton
from p2pdp.protocols.run_plan import EXCESS, at_most, plan_of_facts, plan_run, rows_limit, skeleton_size
from tests.support.learners import learning
from tests.support.runs import HISTOGRAM, quiet, ring, walk
from tests.support.shuffle_specs import shuffle
from tests.support.small import RING
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


@pytest.mark.parametrize("mean", [0.01, 0.5, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("probability", [1e-3, 1e-9, 1e-18])
def test_a_count_is_exceeded_no_more_often_than_said(mean: float, probability: float) -> None:
    count = at_most(mean, probability)
    assert stats.poisson.sf(count, mean) <= probability
    assert stats.binom.sf(count, 1000, mean / 1000) <= probability
    assert count <= mean + 40 + 12 * mean**0.5


RUNS = {
    "ring": ring(4, 20, tokens=2),
    "walk": walk(5, 400),
    "short walk": walk(6, 3),
    "tokens": walk(4, 60, tokens=8),
    "learning": learning(4, 60),
    "histogram": walk(4, 200, **HISTOGRAM),
    "sparse": walk(6, 200, "star"),
    "shuffle": shuffle(8, terms="rounds = 12"),
    "irregular shuffle": shuffle(8, 'kind = "star"', terms="rounds = 12\nstay = 0.5"),
    "cover": shuffle(6, terms="rounds = 6\ncover = true"),
}


@pytest.mark.parametrize("name", RUNS)
def test_skeletons_fit_and_their_size_follows_from_public_facts(name: str) -> None:
    run = quiet(RUNS[name])
    for user in range(run.plan.n):
        contents = run.contents()[user]
        known = contents.records[0].body.neighbours
        degree = run.plan.n - 1 if known is None else len(known)
        size = skeleton_size(run.plan, degree)
        assert size % 4096 == 0
        assert len(to_skeleton(run.evidence.views[user])) < size


def test_it_grows_with_what_is_expected_and_not_with_what_happened() -> None:
    short, long = (quiet(walk(5, hops)).plan for hops in (20, 2000))
    assert skeleton_size(short, 4) < skeleton_size(long, 4)
    one, other = (quiet(walk(5, 20, seed=seed)).plan for seed in (1, 2))
    assert skeleton_size(one, 4) == skeleton_size(other, 4)
    assert 0.0 < EXCESS < 1e-12


def test_nobody_may_state_so_many_rows_that_the_run_could_not_be_planned() -> None:
    def most_of(*overrides: str) -> int:
        spec = parse_spec(RING, None, ['privacy.unit="record"', *overrides])
        return rows_limit(lambda n, rows=None: plan_run(spec, n, 1, rows=rows), 4)

    assert most_of() == ROWS_MAX
    most = most_of("noise.sigma=1e-4")
    assert 1 < most < ROWS_MAX
    spec = parse_spec(RING, None, ['privacy.unit="record"', "noise.sigma=1e-4"])
    plan_run(spec, 4, 1, rows=(most, 1, 1, 1))
    with pytest.raises(UsageError):
        plan_run(spec, 4, 1, rows=(5 * most,) * 4)
