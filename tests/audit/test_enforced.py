"""What a node's own limit promises, beside the local ceiling and what a milked node really gives."""

from __future__ import annotations

import math

import pytest

from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.enforced import enforced_limit, spent_in
from p2pdp.core.claims import Claim
from p2pdp.mechanisms import gaussian
from tests.support import runs
from tests.support.learners import learning, prepared
from tests.support.plans import DELTA, plan


@pytest.mark.parametrize("graph", ["complete", "star"])
def test_it_is_the_ceiling_of_as_many_contributions_as_the_node_makes(graph: str) -> None:
    run = plan(runs.walk(6, 60, graph))
    claim = enforced_limit(run, DELTA)
    assert claim is not None
    most = run.plan.contributions_max
    assert claim.mu_max == pytest.approx(math.sqrt(most) / 2.0)
    assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, math.sqrt(most) / 2.0))
    assert (claim.observer, claim.method, claim.conditioning, claim.bound) == ("network", "local", "a-priori", True)
    (averaged,) = (one for one in beforehand(run, DELTA, (), one_value=False).claims if one.observer == "network")
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
