from __future__ import annotations

import math

import pytest

import p2pdp
from p2pdp.core.claims import Claim, Refusal
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.gossip.analysis import descents
from p2pdp.protocols.gossip.analysis.descent_account import FIXED_BEFOREHAND, MODEL
from p2pdp.protocols.gossip.analysis.descents import descent_forecast, gossip_sigmas_of
from p2pdp.protocols.gossip.analysis.forecast import FORECAST
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import prepared
from tests.support.runs import DELTA, quiet


def test_both_compose_over_the_gradients() -> None:
    run, _ = prepared(gossip_learning(4, "ring"))
    found = gossip_sigmas_of(run, 2.0, 1e-5)
    local, central = found["local"], found["central"]
    assert local is not None
    assert central is not None
    assert gaussian.epsilon_of(1e-5, math.sqrt(3) * 2.0 / local) == pytest.approx(2.0, rel=1e-6)
    assert central == pytest.approx(local / 4)


@pytest.mark.parametrize("epsilon", [None, 0.0, math.inf])
def test_nothing_is_enough_for_nothing(epsilon: float | None) -> None:
    assert gossip_sigmas_of(prepared(gossip_learning(4, "ring"))[0], epsilon, 1e-5) == {"local": None, "central": None}


def test_at_the_headlines_epsilon_local_noise_is_the_runs_own() -> None:
    run, _ = prepared(gossip_learning(4, "ring", sigma=1.3))
    headline = gaussian.epsilon_of(1e-5, math.sqrt(3) * 2.0 / 1.3)
    assert gossip_sigmas_of(run, headline, 1e-5)["local"] == pytest.approx(1.3, rel=1e-6)


@pytest.mark.parametrize("kind", ["path", "ring"])
def test_it_is_what_an_audit_finds_where_nothing_is_late(kind: str) -> None:
    text = gossip_learning(5, kind)
    told = descent_forecast(prepared(text)[0], DELTA)
    assert isinstance(told, Claim)
    (found,) = [one for one in quiet(text).audit().claims if one.method == MODEL]
    assert told.mu_max == pytest.approx(found.mu_max, rel=1e-9)
    assert told.mu_mean == pytest.approx(found.mu_mean, rel=1e-9)
    assert not told.bound
    assert {FORECAST, FIXED_BEFOREHAND} <= set(told.assumptions)


def test_of_a_graph_that_changes_meetings_are_drawn() -> None:
    told = descent_forecast(prepared(gossip_learning(5, "changing"))[0], DELTA)
    assert isinstance(told, Claim)
    assert any("drawn once" in said for said in told.assumptions)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (gossip_learning(1, "complete"), "only user"),
        (gossip_learning(4, "ring", sigma=None), "noise"),
        (gossip_learning(4, "ring", 'rounds = 1\npublish = "one"'), "published"),
    ],
)
def test_what_cannot_be_foreseen_says_why(text: str, why: str) -> None:
    told = descent_forecast(prepared(text)[0], DELTA)
    assert isinstance(told, Refusal)
    assert why in told.reason


def test_too_much_work_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descents, "_WORK_MAX", 1.0)
    told = descent_forecast(prepared(gossip_learning(4, "ring"))[0], DELTA)
    assert isinstance(told, Refusal)
    assert "too long" in told.reason


def test_a_plan_has_the_ceiling_first_and_reaches_its_target() -> None:
    """Three gradients at an epsilon of 2 against anybody: sigma is sqrt(3) times that of one."""
    spec = prepared(gossip_learning(5, "changing", "rounds = 2"))[0].spec
    plan = p2pdp.plan(spec)
    assert plan.claims[0].bound
    assert plan.claims[0].method == "local"
    assert [one.bound for one in plan.claims if one.method == MODEL] == [False]
    assert plan.rounds == 6
    assert set(plan.baselines) == {"local", "central", "none"}
