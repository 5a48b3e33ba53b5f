"""Claims made before a run: the ring's closed forms, what an audit says afterwards, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from p2pdp.auditor.a_priori import NEXT_TO_NOTHING, Tradeoff, claims_a_priori, enforced_limit, recommended, spent_in
from p2pdp.auditor.context import NOBODY_OUT, PUBLIC_ROUTE, sensitivity_of
from p2pdp.core.claims import Claim
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.a_priori import SCHEDULE
from tests.support import runs
from tests.support.learners import learning, prepared
from tests.support.plans import DELTA, claims, node_epsilon, one, plan


def leaks(run: RunPlan) -> list[list[float]]:
    """mu^2 sigma^2 / Delta^2 of every pair, as claimed a priori."""
    found = claims_a_priori(run, DELTA, (), one_value=True)
    assert found.mu is not None
    unit = (run.plan.noise.scale / sensitivity_of(run)) ** 2
    return [[float(mu) ** 2 * unit for mu in row] for row in found.mu]


@pytest.mark.parametrize("n", range(2, 8))
@pytest.mark.parametrize("laps", range(1, 6))
def test_the_ring_has_its_closed_form_for_all_pairs(n: int, laps: int) -> None:
    found = leaks(plan(runs.ring(n, laps)))
    scheduled = [hop for hop in range(laps * n) if hop % max(1, n - 1) == 0]
    for u in range(n):
        for v in range(n):
            after = sum(hop > (laps - 1) * n + v for hop in scheduled)
            if u < v:
                assert found[u][v] == pytest.approx(laps)
            elif u > v:
                assert found[u][v] == pytest.approx(float(laps - 1 + Fraction(1, 1 + after)))
    public = one(claims(runs.ring(n, laps)), "public").mu_max
    assert public is not None
    assert (public * 2.0) ** 2 == pytest.approx(laps**2 / (math.ceil(laps * n / (n - 1)) + 1))


@pytest.mark.parametrize(("n", "laps"), [(3, 1), (4, 2), (5, 2), (5, 4), (6, 3)])
def test_remark_1_has_its_closed_form(n: int, laps: int) -> None:
    found = leaks(plan(runs.ring(n, laps, "share = true\n")))
    for u in range(n):
        for v in range(n):
            if u != v:
                share = (v - 1 if u < v else n - 1 - v) / (n - 1)
                assert found[u][v] == pytest.approx(laps - 1 + 1 / (1 + share))


@pytest.mark.parametrize(("n", "laps"), [(5, 1), (5, 2), (4, 3), (4, 4), (6, 2)])
def test_without_closing_exactly_the_named_pairs_are_unprotected(n: int, laps: int) -> None:
    found = leaks(plan(runs.ring(n, laps, "closing = false\n")))
    for u in range(n):
        for v in range(n):
            last = range((laps - 1) * n + v + 1, laps * n)
            bare = u > v and not any(hop % (n - 1) == 0 for hop in last)
            assert math.isinf(found[u][v]) == bare


@pytest.mark.parametrize(
    "text",
    [
        runs.ring(5, 2),
        runs.ring(5, 2, tokens=2),
        runs.ring(4, 2, "share = true\n"),
        runs.ring(5, 2, "closing = false\n"),
        runs.ring(6, 2, **runs.HISTOGRAM),
    ],
)
def test_on_a_ring_the_audit_says_afterwards_what_was_claimed_before(text: str) -> None:
    before = {(c.observer, c.method): c for c in claims(text, (1, 3)).claims}
    after = [claim for claim in runs.quiet(text).audit((1, 3)).claims if claim.bound]
    assert after
    for claim in after:
        same = before[claim.observer, claim.method]
        assert same.epsilon_max == pytest.approx(claim.epsilon_max)
        assert same.epsilon_mean == pytest.approx(claim.epsilon_mean)
        assert (same.conditioning, same.bound, same.delta) == ("a-priori", True, DELTA)
        assert {SCHEDULE, NOBODY_OUT} <= set(same.assumptions)
        assert PUBLIC_ROUTE not in same.assumptions


def test_every_kind_of_observer_is_claimed_for_or_refused() -> None:
    for text in (runs.ring(4, 2), runs.walk(5, 30), runs.walk(5, 30, **runs.HISTOGRAM), runs.walk(6, 30, "ring")):
        found = claims(text, (1, 2))
        said = {c.observer for c in found.claims} | {r.observer for r in found.refusals}
        order = ["node", "coalition", "curator", "curator+coalition", "public", "network"]
        assert said == set(order)
        places = [order.index(c.observer) for c in found.claims]
        assert places == sorted(places)
        assert all(c.conditioning == "a-priori" for c in found.claims)
        assert all(refusal.reason for refusal in found.refusals)


def test_the_best_bound_of_a_node_is_a_sound_one() -> None:
    for text in (runs.ring(4, 2), runs.walk(5, 40), runs.walk(6, 30, "ring"), runs.ring(4, 2, **runs.HISTOGRAM)):
        run = plan(text)
        found = claims_a_priori(run, DELTA, (), one_value=True).claims
        best = node_epsilon(run, DELTA, one_value=True)
        usable = [c for c in found if c.bound and c.observer in ("node", "network")]
        assert best in [c.epsilon_max for c in usable]
        assert best <= min(c.epsilon_max for c in usable if c.epsilon_max is not None) * (1 + 1e-9)


def test_gossip_has_the_local_ceiling() -> None:
    walk = '[walk]\norder = "random"\nhops = 9\ntokens = 1\n'
    text = runs.walk(4, 9).replace("walk.sum", "gossip.average").replace(walk, "[gossip]\nrounds = 3\n")
    found = claims(text)
    assert {c.method for c in found.claims} == {"local"}
    for observer in ("node", "network"):
        assert one(found, observer).mu_max == pytest.approx(0.5)
        assert one(found, observer).epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, 0.5))
    assert {r.observer for r in found.refusals} == {"node"}
    bare = claims(text.replace(runs.GAUSSIAN, '[noise]\nmechanism = "none"\n'))
    assert bare.claims[0].epsilon_max == math.inf


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        claims_a_priori(plan(runs.ring(3, 1)), delta, (), one_value=True)


def test_noise_of_a_spec_is_no_seed() -> None:
    """A plan is about a live run: nothing about it is hypothetical because of its seed."""
    spec = parse_spec(runs.ring(3, 1), None)
    for sampler, said in (("exact", 0), ("fast", 1)):
        changed = replace(spec, noise=replace(spec.noise, sampler=sampler))
        found = claims_a_priori(plan_run(changed, 3, 1), DELTA, (), one_value=True)
        assert sum("fast sampler" in text for text in found.claims[0].assumptions) == said
        assert not any("seed" in text for text in found.claims[0].assumptions)


@pytest.mark.parametrize("graph", ["complete", "star"])
def test_it_is_the_ceiling_of_as_many_contributions_as_the_node_makes(graph: str) -> None:
    run = plan(runs.walk(6, 60, graph))
    claim = enforced_limit(run, DELTA)
    assert claim is not None
    most = run.plan.contributions_max
    assert claim.mu_max == pytest.approx(math.sqrt(most) / 2.0)
    assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, math.sqrt(most) / 2.0))
    assert (claim.observer, claim.method, claim.conditioning, claim.bound) == ("network", "local", "a-priori", True)
    (averaged,) = (one for one in claims_a_priori(run, DELTA, (), one_value=False).claims if one.observer == "network")
    assert claim.epsilon_max > (averaged.epsilon_max or 0.0)


def test_where_the_plan_fixes_all_contributions_there_is_no_other_limit() -> None:
    assert enforced_limit(plan(runs.ring(5, 2)), DELTA) is None


def test_pure_reports_add_up() -> None:
    run = plan(runs.walk(6, 60, **runs.HISTOGRAM))
    claim = enforced_limit(run, DELTA)
    assert claim is not None
    assert claim.epsilon_max == pytest.approx(float(run.plan.contributions_max))


def test_what_was_estimated_from_the_data_before_is_added() -> None:
    estimates = "standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 1e-6 }"
    run = prepared(learning(20, 100, data=f"{estimates}\nunit_norm = true"))[0]
    claim = enforced_limit(run, 1e-5)
    assert claim is not None
    mu = math.sqrt(run.plan.contributions_max) * run.plan.descent.sensitivity / run.plan.noise.scale
    assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(9e-6, mu) + 0.5)
    assert (claim.mu_max, claim.delta) == (None, pytest.approx(1e-5))


def mu(claim: Claim | None) -> float | None:
    return None if claim is None else claim.mu_max


def test_what_was_spent_follows_from_the_scales_of_the_draws_and_not_from_the_plan() -> None:
    run = plan(runs.walk(6, 60))
    planned = (run.plan.noise,)
    weaker = (run.plan.noise._replace(scale=run.plan.noise.scale / 10.0),)
    assert mu(spent_in(run, 3, [planned] * 4, DELTA)) == pytest.approx(1.0)
    assert mu(spent_in(run, 3, [planned] * 3 + [weaker], DELTA)) == pytest.approx(math.sqrt((3.0 + 100.0) / 4.0))
    bare, nothing = (spent_in(run, 3, made, DELTA) for made in ([planned, ()], []))
    assert bare is not None
    assert nothing is not None
    assert (bare.epsilon_max, nothing.epsilon_max) == (math.inf, 0.0)


def tried(ratio: float, error: float) -> Tradeoff:
    return Tradeoff(ratio, ratio, 1.0, None, 0.5, 1.0, 0.5, error)


def test_the_most_noise_that_costs_next_to_nothing_is_recommended() -> None:
    cheap = 1.0 + 0.9 * NEXT_TO_NOTHING
    found = recommended([tried(0.0, 1.0), tried(0.1, 1.001), tried(0.3, cheap), tried(1.0, 2.0)])
    assert found is not None
    assert found.ratio == 0.3
    assert recommended([tried(0.0, 1.0), tried(0.1, 1.5)]) is None
