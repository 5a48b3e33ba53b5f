from __future__ import annotations

import math

import pytest

from p2pdp.core.claims import Claim, Method
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.walk.analysis.iteration import CONTRACTS, why_not
from p2pdp.sim.faults import Crash
from tests.support.learners import LOGISTIC, RANGES, learning, prepared
from tests.support.runs import quiet, run_of


def by_observer(claims: list[Claim], method: str = Method.ITERATION) -> dict[str, Claim]:
    return {claim.observer: claim for claim in claims if claim.method == method}


def test_every_observer_has_its_claim_and_none_is_above_the_local_ceiling() -> None:
    audit = quiet(learning(6, 80)).audit(colluders=[1, 2])
    found = by_observer(audit.claims)
    assert set(found) == {"node", "coalition", "curator", "public", "network"}
    local = by_observer(audit.claims, "local")["network"]
    assert local.mu_max is not None
    for claim in found.values():
        assert claim.bound
        assert claim.conditioning == "public"
        assert CONTRACTS in claim.assumptions
        assert claim.mu_max is not None
        assert claim.mu_max <= local.mu_max * (1 + 1e-9)
        assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(1e-5, claim.mu_max))
    assert found["curator"].mu_max < found["node"].mu_max  # type: ignore[operator]
    assert audit.mu is not None
    assert audit.mu.shape == (6, 6)


def test_mu_is_sensitivity_over_sigma_where_a_step_stands_alone() -> None:
    audit = quiet(learning(2, 1)).audit()
    node = by_observer(audit.claims)["node"]
    assert node.mu_max == pytest.approx(2 * 1.0 / 0.8, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": LOGISTIC.replace("0.2", "9.0")}, "above 2/smoothness"),
        ({"data": ""}, "features need one"),
        ({"task": LOGISTIC.replace("0.2", "0.2\nregularization = 9.5")}, "above 2/smoothness"),
    ],
)
def test_where_a_condition_fails_it_refuses_and_the_local_ceiling_stands(change: dict[str, str], words: str) -> None:
    text = learning(4, 20, **change)  # type: ignore[arg-type]
    audit = quiet(text).audit()
    assert by_observer(audit.claims) == {}
    assert [claim.method for claim in audit.claims if claim.bound] == ["local"]
    assert {refusal.observer for refusal in audit.refusals} >= {"node", "curator", "public"}
    assert all(words in refusal.reason for refusal in audit.refusals if refusal.method == Method.ITERATION)
    assert words in (why_not(prepared(text)[0].plan) or "")


def test_without_noise_everything_is_infinite_and_said_so() -> None:
    claims = quiet(learning(3, 9, sigma=None)).audit().claims
    assert {claim.epsilon_max for claim in claims} == {math.inf}


def test_a_user_who_is_put_out_does_not_stop_the_account() -> None:
    """The walk goes round it; its own view is not at hand."""
    run = run_of(learning(5, 60, data=RANGES), Crash(2, at_record=30, down_s=None))
    assert run.world.out == [2]
    from tests.support.runs import judged

    audit = judged(run.evidence, lenient=True)
    assert "node" in by_observer(audit.claims)
    assert any(refusal.reason.startswith("user 2") for refusal in audit.refusals)
