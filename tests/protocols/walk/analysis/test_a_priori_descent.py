from __future__ import annotations

import pytest

from p2pdp.audit.beforehand import beforehand
from p2pdp.core.claims import Claim
from p2pdp.core.errors import Refused
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.walk import Exposure, epsilon
from p2pdp.protocols.walk.analysis.rounding import foreseen, ratio_of
from p2pdp.runs.plan import plan_spec
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.plans import node_epsilon
from tests.support.runs import DELTA, quiet


def claims(text: str, colluders: tuple[int, ...] = ()) -> dict[tuple[str, str], Claim]:
    found = beforehand(prepared(text)[0], DELTA, colluders, one_value=False)
    return {(claim.observer, claim.method): claim for claim in found.claims}


def refused(text: str, colluders: tuple[int, ...] = ()) -> dict[str, str]:
    found = beforehand(prepared(text)[0], DELTA, colluders, one_value=False)
    return {refusal.observer: refusal.reason for refusal in reversed(found.refusals)}


def test_on_the_complete_graph_everybody_has_a_claim_by_iteration() -> None:
    found = claims(learning(10, 100))
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
    found = {claim.observer: claim for claim in beforehand(run, delta, (), one_value=False).claims if claim.bound}
    for observer, watched in (("node", True), ("curator", False), ("public", False)):
        ideal = epsilon(ratio_of(run), Exposure(10, 99, starts=True, watched=watched), 1, delta)
        nu = foreseen(run).nu
        assert 0.0 < nu < 1e-5
        told = found[observer].epsilon_max
        assert told is not None
        assert ideal + 2.0 * gaussian.epsilon_of(delta, nu) < told < 1.002 * ideal
        assert set(foreseen(run).said) < set(found[observer].assumptions)


def test_several_tokens_begin_with_a_uniform_user_so_all_are_alike() -> None:
    node = claims(learning(10, 50, tokens=2))["node", "iteration"]
    assert node.epsilon_max == node.epsilon_mean
    assert "one token" in refused(learning(10, 50, tokens=2))["node"]


def test_who_takes_a_step_is_no_secret_that_counts() -> None:
    """Of three users, the observer one of them, a token that only moves goes to and fro: the path is known."""
    wild = learning(3, 30, task=LOGISTIC.replace("0.2", "7.0"))
    found = beforehand(prepared(wild)[0], DELTA, (), one_value=False)
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
    assert {method for _, method in claims(text)} <= {
        "local",
        "published:complete_sgd",
        "published:walk_any_graph",
    }
    assert ("network", "local") in claims(text)


def test_coalitions_are_refused_in_advance() -> None:
    assert "pools views" in refused(learning(6, 30), (1, 2))["coalition"]


def test_on_a_ring_the_plan_is_what_the_audit_will_say() -> None:
    text = learning(4, kind="ring", order='order = "ring"\nlaps = 3')
    before = claims(text)
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
