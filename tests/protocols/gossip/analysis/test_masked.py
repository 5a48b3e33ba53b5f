"""Bounds from noise of pairs: against dense matrices of all that was sent, and with users who are gone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.context import COMPUTATIONAL, NO_KEYS, NOBODY_OUT
from p2pdp.auditor.headline import bounds_of
from p2pdp.core.claims import Claim, Observer
from p2pdp.core.draws import Mechanism
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import pair_leaks
from p2pdp.protocols.gossip.analysis import masked as module
from p2pdp.protocols.gossip.analysis.masked import known_draws, masked_a_priori, masked_account
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash
from tests.support.gossip_learners import LINEAR, LOGISTIC, MEAN, gossip_learning
from tests.support.gossips import context_of, gossip
from tests.support.plans import claims as claims_of
from tests.support.plans import plan
from tests.support.replay_oracle import leaks, seen_by
from tests.support.runs import DELTA, Run, run_of

SHARED = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0'


def learning(n: int = 6, kind: str = "ring", terms: str = "rounds = 2", **more: Any) -> str:
    return gossip_learning(n, kind, terms, **more).replace("sigma = 0.8", "sigma = 0.8\npair_sigma = 2.4")


@cache
def learned(text: str, *crashes: Crash) -> Run:
    return run_of(parse_spec(text, None), *crashes)


def of(claims: list[Claim], observer: str) -> Claim:
    (found,) = [claim for claim in claims if claim.observer == observer]
    return found


@pytest.mark.parametrize("task", [LOGISTIC, LINEAR])
@pytest.mark.parametrize(("n", "kind"), [(6, "ring"), (5, "complete"), (5, "star")])
def test_it_is_what_all_messages_tell_of_gradients_that_are_fixed(task: str, n: int, kind: str) -> None:
    """They tell every noised gradient, so the bound is reached, by colluders too who hear everybody."""
    run = learned(learning(n, kind, task=task))
    context = context_of(run, (0, 1))
    found = masked_account(context).claims
    unit = context.sensitivity * run.plan.plan.unit
    transcript = context.transcript
    brute = unit * np.sqrt(leaks(transcript, n, seen_by(transcript, "network")))
    assert of(found, "network").mu_max == pytest.approx(brute.max(), rel=1e-8)
    pooled = unit * np.sqrt(leaks(transcript, n, seen_by(transcript, "coalition", (0, 1)), (0, 1)))
    claimed = of(found, "coalition").mu_max
    assert claimed is not None
    assert claimed >= np.nanmax(pooled) * (1 - 1e-9)
    if kind == "complete":
        assert claimed == pytest.approx(np.nanmax(pooled), rel=1e-8)
    for user in range(n):
        alone = unit * np.sqrt(leaks(transcript, n, seen_by(transcript, "node", (user,)), (user,)))
        assert of(found, "node").mu_max >= np.nanmax(alone) * (1 - 1e-9)  # type: ignore[operator]
    assert all(COMPUTATIONAL in claim.assumptions and claim.bound for claim in found)
    assert NO_KEYS in of(found, "network").assumptions


def test_its_claims_are_the_best_bounds_of_a_run() -> None:
    run = learned(learning())
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, (0, 2))
    local = of([claim for claim in audit.claims if claim.method == "local"], "network")
    for observer in ("node", "network"):
        exact = of([claim for claim in audit.claims if claim.method == "exact"], observer)
        assert exact.epsilon_max < local.epsilon_max  # type: ignore[operator]
    pooled = of([claim for claim in audit.claims if claim.method == "exact"], "coalition")
    assert pooled.mu_max == pytest.approx(local.mu_max), "user 1 has colluding neighbours only"
    assert not any(refusal.method == "exact" for refusal in audit.refusals)


GONE = {8: [0], 22: [1], 34: [2], 60: []}


@pytest.mark.parametrize("at", GONE)
def test_what_was_taken_back_counts_as_known_and_all_else_does_not(at: int) -> None:
    run = learned(learning(), Crash(peer=2, at_record=at, down_s=None))
    context = context_of(run, (), run.world.out)
    known = known_draws(context)
    assert known is not None
    assert sorted(source.number for source in known) == GONE[at], "user 3, which waits for it, takes one draw back"
    found = masked_account(context).claims
    transcript = context.transcript
    unit = context.sensitivity * run.plan.plan.unit
    brute = unit * np.sqrt(leaks(transcript, 6, seen_by(transcript, "network")))
    network = of(found, "network").mu_max
    assert network is not None
    assert network >= brute.max() * (1 - 1e-9)
    whole = of(masked_account(context_of(learned(learning()))).claims, "network").mu_max
    assert whole is not None
    assert (network > whole * 1.05) == (at != 60)
    assert any("taken back" in said for said in of(found, "network").assumptions) == bool(known)


def test_noise_of_pairs_that_is_not_of_the_plan_proves_nothing() -> None:
    context = context_of(learned(learning()))
    weak = dict.fromkeys(context.transcript.pairs, Mechanism("gaussian", 1.0))
    found = masked_account(replace(context, transcript=replace(context.transcript, pairs=weak)))
    assert found.claims == []
    assert {refusal.observer for refusal in found.refusals} == {"node", "network"}
    fewer = dict(list(context.transcript.pairs.items())[1:])
    unsaid = masked_account(replace(context, transcript=replace(context.transcript, pairs=fewer)))
    assert unsaid.claims == [], "a draw that nobody recorded is in what was sent"


def test_without_noise_of_pairs_there_is_nothing() -> None:
    context = context_of(learned(gossip_learning(4)))
    assert (masked_account(context).claims, masked_account(context).refusals) == ([], [])
    assert masked_a_priori(plan(gossip(5, "ring")), DELTA, (), 1) == []


@pytest.mark.parametrize("text", [gossip(8, "ring", noise=SHARED), learning(8, task=LOGISTIC), learning(8, task=MEAN)])
def test_in_advance_it_bounds_what_an_audit_finds_if_nobody_is_out(text: str) -> None:
    before = claims_of(text, (0, 1)).claims
    made = [claim for claim in before if claim.method == "exact"]
    assert {claim.observer for claim in made} == {"node", "coalition", "network"}
    assert all(claim.conditioning == "a-priori" and NOBODY_OUT in claim.assumptions for claim in made)
    run = learned(text)
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, (0, 1))
    for claim in made:
        after = [one.mu_max for one in audit.claims if (one.observer, one.method) == (claim.observer, "exact")]
        assert min(after) <= claim.mu_max * (1 + 1e-4)  # type: ignore[type-var,operator]
    contributions = 1 if "average" in text else run.plan.plan.gradients
    leak = np.nanmax(pair_leaks(run.world.run.graph, 1.0, 3.0, [0, 1]))  # type: ignore[arg-type]
    mu = context_of(run).sensitivity / run.plan.plan.noise.scale * np.sqrt(contributions * leak)
    assert of(made, "coalition").mu_max == pytest.approx(mu, rel=1e-9)
    assert of(made, "coalition").epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, mu), rel=1e-6)


def test_budgets_rest_on_the_local_ceiling_alone() -> None:
    run = plan(gossip(8, "ring", noise=SHARED))
    analysis = run.protocol.analysis()
    found = analysis.a_priori(run, DELTA, (), one_value=True).claims
    assert {claim.method for claim in analysis.lasting(found)} == {"local"}
    assert {claim.observer for claim in found if claim.method == "exact"} == {Observer.NODE, Observer.NETWORK}


def test_for_many_users_one_inverse_gives_the_same_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    run = plan(gossip(12, "ring", noise=SHARED))
    slow = masked_a_priori(run, DELTA, (), 1)
    monkeypatch.setattr(module, "_WORK_MAX", 1.0)
    quick = masked_a_priori(run, DELTA, (), 1)
    for one, other in zip(slow, quick, strict=True):
        assert other.mu_max == pytest.approx(one.mu_max, rel=1e-6)
        assert other.mu_max >= one.mu_max * (1 - 1e-12)  # type: ignore[operator]
    too_much = plan(gossip(12, "ring", noise=SHARED.replace("pair_sigma = 3.0", "pair_sigma = 1e5")))
    assert {claim.observer for claim in masked_a_priori(too_much, DELTA, (), 1)} == {"network"}


def test_published_models_are_covered_too() -> None:
    run = learned(learning(terms='rounds = 2\npublish = "all"'))
    found = masked_account(context_of(run)).claims
    network = of(found, "network")
    for role in ("curator", "public"):
        assert of(found, role).mu_max == network.mu_max
        assert NO_KEYS not in of(found, role).assumptions
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, ())
    local = of([claim for claim in audit.claims if claim.method == "local"], "network").epsilon_max
    bounds = bounds_of(audit.claims, audit.refusals, 6, DELTA)
    assert all(bound.epsilon < local for bound in bounds)  # type: ignore[operator]
    assert {bound.observer for bound in bounds} == {"node", "curator", "public", "network"}
