from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import p2pdp
from p2pdp.auditor.a_priori import recommended
from p2pdp.core.claims import Claim, Refusal
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis import forecast as module
from p2pdp.protocols.gossip.analysis.fast import standard_error_of
from p2pdp.protocols.gossip.analysis.forecast import RATIOS, Forecast, forecast, forecast_claim, tradeoff_of
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


DELTA_MESSAGE_NOISE = 1e-5


def test_more_noise_on_messages_tells_less_and_errs_more() -> None:
    rows = tradeoff_of(plan(gossip(16, "ring", "rounds = 8")), DELTA_MESSAGE_NOISE)
    assert rows is not None
    assert [row.ratio for row in rows] == list(RATIOS)
    assert rows[0].leak_max == rows[0].leak_far_max == rows[0].leak_mean == pytest.approx(1.0)
    for less, more in pairwise(rows):
        assert more.leak_mean < less.leak_mean
        assert more.epsilon_max < less.epsilon_max
        assert more.epsilon_mean < less.epsilon_mean
        assert more.epsilon_mean < more.epsilon_max
        assert more.standard_error > less.standard_error
        assert more.leak_far_max is not None
        assert more.leak_far_max < more.leak_max


def test_standard_errors_are_those_of_such_runs() -> None:
    rows = tradeoff_of(plan(gossip(9, "star", "rounds = 4\naccelerated = true")), DELTA_MESSAGE_NOISE)
    assert rows is not None
    for row in rows[1:]:
        terms = f"rounds = 4\naccelerated = true\nmessage_sigma = {row.message_sigma}"
        assert row.standard_error == pytest.approx(standard_error_of(plan(gossip(9, "star", terms))), rel=1e-9)
    assert rows[0].standard_error == pytest.approx(
        standard_error_of(plan(gossip(9, "star", "rounds = 4\naccelerated = true")))
    )


def test_the_noise_of_the_spec_is_among_them() -> None:
    rows = tradeoff_of(plan(gossip(8, "ring", "rounds = 3\nmessage_sigma = 0.5")), DELTA_MESSAGE_NOISE)
    assert rows is not None
    assert [row.message_sigma for row in rows] == pytest.approx([0.0, 0.02, 0.06, 0.2, 0.5, 0.6, 2.0])


def test_the_most_noise_is_recommended_that_costs_next_to_nothing() -> None:
    rows = tradeoff_of(plan(gossip(16, "ring", "rounds = 8")), DELTA_MESSAGE_NOISE)
    assert rows is not None
    found = recommended(rows)
    assert found is not None
    assert 0.0 < found.ratio < RATIOS[-1]
    for row in rows[1:]:
        assert (row.standard_error <= 1.01 * rows[0].standard_error) == (row.ratio <= found.ratio)
    dear = [replace(row, standard_error=(1.0 + row.ratio) * rows[0].standard_error) for row in rows[2:]]
    assert recommended([rows[0], *dear]) is None


def test_neighbours_only() -> None:
    rows = tradeoff_of(plan(gossip(4, "complete", "rounds = 2")), DELTA_MESSAGE_NOISE)
    assert rows is not None
    assert all(row.leak_far_max is None for row in rows)


def test_where_nothing_can_be_forecast_there_is_none() -> None:
    for text in (gossip(4, "ring", noise='mechanism = "none"'), gossip(4, "ring", 'rounds = 2\npublish = "all"')):
        assert tradeoff_of(plan(text), DELTA_MESSAGE_NOISE) is None
    assert tradeoff_of(replace(plan(gossip(4, "ring")), graph=None), DELTA_MESSAGE_NOISE) is None


def test_the_plan_has_forecast_and_tradeoff() -> None:
    spec = parse_spec(gossip(8, "ring", "rounds = 3"), None)
    document = p2pdp.plan(spec).to_json()
    json.dumps(document)
    assert len(document["message_noise"]) == len(RATIOS)
    assert set(document["message_noise"][0]) == {
        "ratio", "message_sigma", "leak_max", "leak_far_max", "leak_mean", "epsilon_max", "epsilon_mean",
        "standard_error",
    }  # fmt: skip
    foreseen = [claim for claim in document["claims"] if claim["method"] == "exact"]
    assert [(one["observer"], one["conditioning"], one["bound"]) for one in foreseen] == [("node", "public", False)]
    assert document["claims"][0]["bound"] is True
    assert document["message_sigma_recommended"] in [row["message_sigma"] for row in document["message_noise"][1:]]
    assert document["standard_error"] == pytest.approx(document["message_noise"][0]["standard_error"])
    pairs = parse_spec(gossip(8, "ring", "activations = 9", protocol="randomized"), None)
    without = p2pdp.plan(pairs).to_json()
    assert without["message_noise"] is without["message_sigma_recommended"] is None
