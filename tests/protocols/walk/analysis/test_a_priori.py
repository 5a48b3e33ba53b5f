"""Which law of visits a plan rests on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.auditor.exact import exact_account
from p2pdp.core.claims import Claim
from p2pdp.core.errors import Refused
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.law import Walked, exposure_law
from p2pdp.privacy.iteration.walk import Exposure, epsilon
from p2pdp.privacy.visits import STEPS_MAX, gaussian_epsilon
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.a_priori import SCHEDULE, Visits, a_priori_of_ring, a_priori_of_walk
from p2pdp.protocols.walk.analysis.iteration import foreseen, ratio_of
from p2pdp.runs.plan import plan_spec
from tests.support import runs
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.plans import claims, node_epsilon, one, plan
from tests.support.runs import DELTA, quiet
from tests.support.small import COMPLETE, RING, SPARSE


def planned(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def test_on_a_ring_the_account_speaks_beforehand() -> None:
    found = a_priori_of_ring(planned(RING), DELTA, (1,), exact_account)
    assert {"node", "coalition", "curator", "curator+coalition", "public", "network"} == {
        claim.observer for claim in found.claims
    }
    for claim in found.claims:
        assert claim.conditioning == "a-priori"
        assert claim.assumptions[:2] == (SCHEDULE, NOBODY_OUT)


def test_a_random_walk_has_claims_by_its_visits_and_says_what_is_not_worked_out() -> None:
    found = a_priori_of_walk(planned(COMPLETE), DELTA, (1,), one_value=True)
    assert [claim.observer for claim in found.claims] == ["node", "curator", "public", "network"]
    assert [refusal.observer for refusal in found.refusals] == ["coalition", "curator+coalition"]
    several = a_priori_of_walk(planned(COMPLETE), DELTA, (), one_value=False)
    assert "node" in {refusal.observer for refusal in several.refusals}
    laplace = a_priori_of_walk(planned(SPARSE), DELTA, (), one_value=True)
    assert [claim.observer for claim in laplace.claims] == ["network"]


def test_a_single_token_begins_at_user_0() -> None:
    visits = Visits(plan(runs.walk(10, 100)), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([10.9] + [9.9] * 9, rel=1e-6)
    assert [law.mean for law in visits.one_token] == [law.mean for law in visits.all_tokens]


def test_several_tokens_begin_anywhere() -> None:
    visits = Visits(plan(runs.walk(10, 50, tokens=3)), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([15.0] * 10, rel=1e-6)
    assert [law.mean for law in visits.one_token] == pytest.approx([5.0] * 10, rel=1e-6)


def test_on_other_graphs_degrees_decide() -> None:
    visits = Visits(plan(runs.walk(5, 400, "star")), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([200.0] + [50.0] * 4, abs=0.5)
    both = Visits(plan(runs.walk(5, 400, "star", tokens=2)), DELTA)
    assert [law.mean for law in both.all_tokens] == pytest.approx([400.0] + [100.0] * 4, abs=1.0)


def test_where_the_law_is_not_computed_all_steps_may_be_anybodys() -> None:
    for run in (
        plan(runs.walk(4, STEPS_MAX + 1, "star", tokens=2)),
        replace(plan(runs.walk(4, STEPS_MAX + 1, "star", tokens=2)), graph=None),
    ):
        visits = Visits(run, DELTA)
        assert [law.mean for law in visits.all_tokens] == [2.0 * (STEPS_MAX + 1)] * 4
        assert "every step" in visits.basis
    small = replace(plan(runs.walk(4, 30, "star")), graph=None)
    assert "every step" in Visits(small, DELTA).basis


MU = 0.5


def average(chances: list[tuple[float, float]], epsilon: float) -> float:
    return math.fsum(chance * gaussian.delta_of(epsilon, mu) for chance, mu in chances)


@pytest.mark.parametrize(("observer", "noises"), [("public", 60), ("curator", 60), ("network", None)])
def test_averages_over_visits_are_exact_for_the_law_of_visits(observer: str, noises: int | None) -> None:
    """The worst is user 0, who begins: one visit for sure, 59 more by chance."""
    claim = one(claims(runs.walk(6, 60)), observer)
    chances = []
    for more in range(60):
        count = more + 1
        mu = MU * (math.sqrt(count) if noises is None else count / math.sqrt(noises))
        chances.append((float(binom.pmf(more, 59, 1 / 6)), mu))
    assert claim.epsilon_max is not None
    assert average(chances, claim.epsilon_max) <= DELTA
    assert average(chances, claim.epsilon_max * (1 - 1e-4)) > DELTA
    assert (claim.worst_pair, claim.bound, claim.mu_max) == ((0, observer), True, None)
    assert claim.epsilon_mean is not None
    assert claim.epsilon_mean < claim.epsilon_max


def test_observers_who_see_more_learn_more() -> None:
    found = claims(runs.walk(6, 60))
    node, public, network = (one(found, observer).epsilon_max or 0.0 for observer in ("node", "public", "network"))
    assert public < network
    assert node < network
    two = claims(runs.walk(6, 60, tokens=2))
    assert (one(two, "public").epsilon_max or 0.0) < (one(two, "curator").epsilon_max or 0.0)


def test_totals_of_several_tokens_count_one_by_one() -> None:
    """Drawn at random: the curator's mu^2 is the sum over tokens of c^2 / T."""
    claim = one(claims(runs.walk(4, 20, tokens=3)), "curator")
    counts = np.random.default_rng(1).binomial(20, 0.25, size=(4000, 3)).astype(float)
    mus = MU * np.sqrt((counts**2).sum(axis=1) / 20)
    assert claim.epsilon_max is not None
    mean = float(np.mean([gaussian.delta_of(claim.epsilon_max, mu) for mu in mus]))
    assert 0.3 * DELTA < mean < 1.5 * DELTA


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (runs.walk(6, 30, "ring"), "complete graph only"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "none"\n'), "hidden path does not protect"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "gaussian"\nsigma = 0.001\n'), "hidden path does not protect"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'), "laplace"),
        (runs.walk(6, 30, **runs.HISTOGRAM), "reports"),
    ],
)
def test_what_a_hidden_path_adds_is_refused_with_its_reason(text: str, why: str) -> None:
    found = claims(text)
    assert not any(claim.observer == "node" and claim.bound for claim in found.claims)
    assert any(refusal.observer == "node" and why in refusal.reason for refusal in found.refusals)
    assert one(found, "network").method == "local"


def test_users_with_several_values_are_refused_a_hidden_path() -> None:
    found = claims(runs.walk(6, 30), one_value=False)
    assert [r.reason for r in found.refusals if r.method == "hidden-path"] == [
        "some user contributes several values in turn; the law of a path is for one value a user"
    ]


def test_without_noise_everything_is_told() -> None:
    found = claims(runs.walk(4, 12, noise='[noise]\nmechanism = "none"\n'))
    assert {one(found, observer).epsilon_max for observer in ("curator", "public", "network")} == {math.inf}


def test_pure_reports_count_as_often_as_is_hardly_ever_exceeded() -> None:
    claim = one(claims(runs.walk(6, 60, **runs.HISTOGRAM)), "network")
    assert claim.epsilon_max == pytest.approx(1 + binom.isf(DELTA, 59, 1 / 6), abs=1.01)


def test_somebody_alone_has_no_other_node() -> None:
    found = claims(runs.walk(1, 4))
    assert [claim.observer for claim in found.claims] == ["curator", "public", "network"]


def claims_a_priori_descent(text: str, colluders: tuple[int, ...] = ()) -> dict[tuple[str, str], Claim]:
    found = claims_a_priori(prepared(text)[0], DELTA, colluders, one_value=False)
    return {(claim.observer, claim.method): claim for claim in found.claims}


def refused(text: str, colluders: tuple[int, ...] = ()) -> dict[str, str]:
    found = claims_a_priori(prepared(text)[0], DELTA, colluders, one_value=False)
    return {refusal.observer: refusal.reason for refusal in reversed(found.refusals)}


def test_on_the_complete_graph_everybody_has_a_claim_by_iteration() -> None:
    found = claims_a_priori_descent(learning(10, 100))
    assert set(found) == {
        ("node", "iteration"),
        ("node", "published:complete_sgd"),
        ("curator", "iteration"),
        ("public", "iteration"),
        ("network", "local"),
    }
    node, network = found["node", "iteration"], found["network", "local"]
    assert node.worst_pair == (0, 1), "user 0 starts, and is worst off"
    assert node.epsilon_max > node.epsilon_mean > 0  # type: ignore[operator]
    assert node.epsilon_max < network.epsilon_max  # type: ignore[operator]
    assert found["curator", "iteration"].epsilon_max < node.epsilon_max  # type: ignore[operator]
    assert not found["node", "published:complete_sgd"].bound
    assert all(claim.conditioning == "a-priori" for claim in found.values())


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_rounding_is_added_and_costs_next_to_nothing(delta: float) -> None:
    run = prepared(learning(10, 100))[0]
    found = {claim.observer: claim for claim in claims_a_priori(run, delta, (), one_value=False).claims if claim.bound}
    for observer, watched in (("node", True), ("curator", False), ("public", False)):
        law = exposure_law(Walked(10, 99, True, int(watched)), delta)
        ideal = gaussian_epsilon(law, ratio_of(run), delta)
        assert ideal < epsilon(ratio_of(run), Exposure(10, 99, starts=True, watched=watched), 1, delta)
        nu = foreseen(run).nu
        assert 0.0 < nu < 1e-5
        told = found[observer].epsilon_max
        assert told is not None
        grids = 1e-3 * ideal  # those of laws for different deltas differ
        assert ideal + 2.0 * gaussian.epsilon_of(delta, nu) - grids < told < 1.002 * ideal
        assert set(foreseen(run).assumptions) < set(found[observer].assumptions)


def test_several_tokens_begin_with_a_uniform_user_so_all_are_alike() -> None:
    node = claims_a_priori_descent(learning(10, 50, tokens=2))["node", "iteration"]
    assert node.epsilon_max == node.epsilon_mean
    assert "one token" in refused(learning(10, 50, tokens=2))["node"]


def test_who_takes_a_step_is_no_secret_that_counts() -> None:
    """Of three users, the observer one of them, a token that only moves goes to and fro: the path is known."""
    wild = learning(3, 30, task=LOGISTIC.replace("0.2", "7.0"))
    found = claims_a_priori(prepared(wild)[0], DELTA, (), one_value=False)
    assert not [one for one in found.claims if one.method == "hidden-path"]
    refused_too = {one.observer for one in found.refusals if one.method == "hidden-path" and "arrive" in one.reason}
    assert refused_too == {"node", "curator", "public"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (learning(6, 30, kind="grid"), "not complete"),
        (learning(6, 30, task=LOGISTIC + '\nschedule = "inverse"'), "rates that change"),
        (learning(6, 30, task=LOGISTIC.replace("0.2", "7.0")), "2/smoothness"),
    ],
)
def test_what_is_not_worked_out_is_refused_and_local_stands(text: str, words: str) -> None:
    assert words in refused(text)["node"]
    assert {method for _, method in claims_a_priori_descent(text)} <= {
        "local",
        "published:complete_sgd",
        "published:walk_any_graph",
    }
    assert ("network", "local") in claims_a_priori_descent(text)


def test_coalitions_see_the_token_more_often() -> None:
    found = claims_a_priori_descent(learning(6, 30), (1, 2))
    told = [found[name, "iteration"].epsilon_max for name in ("curator", "node", "coalition", "curator+coalition")]
    assert None not in told
    assert told[0] < told[1] < told[2] == told[3]  # type: ignore[operator]
    assert found["coalition", "iteration"].worst_pair == (0, (1, 2))
    assert claims_a_priori_descent(learning(6, 30), (0, 2))["coalition", "iteration"].worst_pair[0] == 1  # type: ignore[index]


def test_on_a_ring_the_plan_is_what_the_audit_will_say() -> None:
    text = learning(4, kind="ring", order='order = "ring"\nlaps = 3')
    before = claims_a_priori_descent(text)
    for claim in quiet(text).audit().claims:
        told = before[claim.observer, claim.method]
        assert told.conditioning == "a-priori"
        assert told.mu_max == pytest.approx(claim.mu_max, rel=1e-9)


def test_the_target_search_finds_the_least_noise() -> None:
    spec = prepared(learning(20, 100))[0].spec
    found = plan_spec(spec, 3.0).target
    assert found is not None
    assert (found.parameter, found.epsilon) == ("sigma", 3.0)
    assert 2.99 < found.reached <= 3.0
    assert found.local_value > found.value
    noised = prepared(learning(20, 100, sigma=found.value))[0]
    assert node_epsilon(noised, DELTA, one_value=False) == pytest.approx(found.reached)
    with pytest.raises(Refused, match="protects nobody"):
        plan_spec(prepared(learning(20, 100, sigma=None))[0].spec, 3.0)
