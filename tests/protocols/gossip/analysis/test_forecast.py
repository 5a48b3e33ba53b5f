from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from p2pdp.core.claims import Claim, Refusal
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis import forecast as module
from p2pdp.protocols.gossip.analysis.forecast import Forecast, forecast, forecast_claim
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support.gossips import gossip
from tests.support.runs import DELTA, quiet


def plan(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


@pytest.mark.parametrize(
    "text",
    [
        gossip(16, "hypercube", "rounds = 3"),
        gossip(9, "star", "rounds = 2\naccelerated = true"),
        gossip(11, "ring", "rounds = 4"),
        gossip(12, "erdos_renyi", "rounds = 3"),
    ],
)
def test_where_nothing_is_late_the_audit_finds_what_was_forecast(text: str) -> None:
    after = quiet(text).audit()
    found = forecast(plan(text), [0.0])
    assert isinstance(found, Forecast)
    assert after.leak is not None
    assert found.observers == list(range(plan(text).n))
    np.testing.assert_allclose(found.leaks[0], after.leak, atol=1e-9)
    foreseen, audited = forecast_claim(plan(text), DELTA), after.claims[0]
    assert isinstance(foreseen, Claim)
    assert (foreseen.bound, foreseen.conditioning) == (False, "public")
    for name in ("epsilon_max", "epsilon_mean", "mu_max", "mu_mean"):
        assert getattr(foreseen, name) == pytest.approx(getattr(audited, name), abs=1e-6)


def test_noise_on_messages_is_forecast_a_little_above() -> None:
    text = gossip(8, "hypercube", "rounds = 4\nmessage_sigma = 0.5")
    after, foreseen = quiet(text).audit(), forecast_claim(plan(text), DELTA)
    assert isinstance(foreseen, Claim)
    assert foreseen.mu_mean is not None
    found = after.claims[0].mu_mean
    assert found is not None
    assert found <= foreseen.mu_mean <= 1.15 * found


def test_more_noise_tells_less() -> None:
    found = forecast(plan(gossip(16, "ring", "rounds = 8")), [0.0, 0.01, 0.1, 1.0])
    assert isinstance(found, Forecast)
    pairs = ~np.isnan(found.leaks[0])
    for more, less in pairwise(found.leaks):
        assert np.all(less[pairs] <= more[pairs] + 1e-9)
    assert found.leaks[0][8, 0] == pytest.approx(1.0)
    assert found.leaks[1][8, 0] < 0.1


def test_large_runs_are_looked_at_in_part_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    run = plan(gossip(32, "ring", "rounds = 4"))
    monkeypatch.setattr(module, "_WORK_MAX", 32 * 8 * 8 * 5.0)
    found = forecast(run, [0.0, 0.1])
    assert isinstance(found, Forecast)
    assert found.observers == [0, 7, 15, 23, 31]
    assert found.leaks[1].shape == (32, 5)
    claim = forecast_claim(run, DELTA)
    assert isinstance(claim, Claim)
    assert any("5 of the 32 users" in said for said in claim.assumptions)
    monkeypatch.setattr(module, "_WORK_MAX", 1.0)
    refused = forecast_claim(run, DELTA)
    assert isinstance(refused, Refusal)
    assert "takes too long" in refused.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (gossip(6, "ring", "activations = 9", protocol="randomized"), "which pairs meet"),
        (gossip(1, "complete", "rounds = 2"), "only user"),
        (gossip(4, "ring", noise='mechanism = "laplace"\nsigma = 2.0'), "laplace"),
        (gossip(4, "ring", noise='mechanism = "none"'), "none noise"),
        (gossip(4, "ring", 'rounds = 2\npublish = "one"'), "published"),
    ],
)
def test_what_cannot_be_forecast_is_said(text: str, reason: str) -> None:
    refused = forecast_claim(plan(text), DELTA)
    assert isinstance(refused, Refusal)
    assert reason in refused.reason
