"""What a run of learning by gossip came to, by its ledgers alone; late and gone users included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import error_of, estimate_of, truth_of
from p2pdp.assembly.pools import Pool
from p2pdp.protocols.gossip.analysis import outcome_descent
from p2pdp.protocols.gossip.analysis import outcome_descent as gossip_descents
from p2pdp.protocols.gossip.analysis.fast import fast_gossip_descent
from p2pdp.protocols.gossip.analysis.outcome_descent import (
    gossip_baselines_of,
    gossip_scored,
    noise_upper,
    truth_of_finals,
)
from p2pdp.replay.transcript import Transcript
from p2pdp.sim.faults import Crash
from p2pdp.tasks.descending import Population
from tests.support.fault_worlds import world_of
from tests.support.gossip_learners import LINEAR, LOGISTIC, MEAN, gossip_learning
from tests.support.learners import prepared
from tests.support.outcomes import outcome

PUBLISHED = gossip_learning(4, "changing", 'rounds = 2\npublish = "all"', task=LINEAR)


def found_of(text: str, *crashes: Crash, **network: Any) -> Any:
    world = world_of(text, 3, *crashes, **network)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    run, data = prepared(text)
    return run, outcome(run, views, world.out), data.user


@pytest.mark.parametrize("text", [gossip_learning(5, "changing"), gossip_learning(5, "ring", task=LINEAR), PUBLISHED])
def test_replays_give_the_truth_that_weights_give(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found, rows = found_of(text)
    assert not isinstance(found.course, Transcript)
    by_weights = truth_of(run, found, rows)
    monkeypatch.setattr(gossip_descents, "was_skipped", lambda _views: True)
    run, again, rows = found_of(text)
    assert isinstance(again.course, Transcript)
    assert truth_of(run, again, rows) == pytest.approx(by_weights, abs=1e-12)


@pytest.mark.parametrize("text", [gossip_learning(4, "ring", patience_s=0.5), PUBLISHED.replace("3.0", "0.5")])
def test_the_truth_of_a_run_in_which_somebody_was_late(text: str) -> None:
    """Without noise the models of the same exchanges are what the machines come to, and so is the truth."""
    for told in (text, text.replace('mechanism = "gaussian"\nsigma = 0.8', 'mechanism = "none"')):
        run, found, rows = found_of(told, Crash(3, at_s=0.012, down_s=3.0))
        assert isinstance(found.course, Transcript), "rounds were skipped"
        truth = truth_of(run, found, rows)
        assert truth is not None
        if run.plan.noise.name == "none":
            assert truth == pytest.approx(truth_of_finals(run, found.finals), abs=1e-9)
        assert estimate_of(run, found).standard_error is None
        assert np.isfinite(error_of(run, found, estimate_of(run, found).value, truth)).all()  # type: ignore[arg-type]


def test_without_noise_nothing_is_off() -> None:
    run, found, rows = found_of(gossip_learning(5, "complete", 'rounds = 3\npublish = "all"', sigma=None))
    truth, estimate = truth_of(run, found, rows), estimate_of(run, found)
    assert estimate.value == pytest.approx(truth, abs=1e-12)
    assert estimate.standard_error == [0.0] * 3


def test_errors_are_those_of_the_contract() -> None:
    run, found, rows = found_of(gossip_learning(5, "ring"))
    truth, estimate = truth_of(run, found, rows), estimate_of(run, found)
    assert estimate.value is None
    off = np.array(list(found.finals.values())) - np.array(truth)
    assert error_of(run, found, None, truth) == pytest.approx(np.sqrt((off**2).mean(axis=0)).tolist())
    run, found, rows = found_of(PUBLISHED)
    value, truth = estimate_of(run, found).value, truth_of(run, found, rows)
    assert value == pytest.approx(np.mean(list(found.finals.values()), axis=0).tolist())
    assert error_of(run, found, value, truth) == pytest.approx((np.array(value) - np.array(truth)).tolist())


def test_the_end_of_what_noise_did_holds() -> None:
    for text in (gossip_learning(4, "ring"), gossip_learning(4, "star", "rounds = 3\naccelerated = true", task=LINEAR)):
        run, found, rows = found_of(text)
        truth, end = truth_of(run, found, rows), noise_upper(run)
        assert end is not None
        off = np.array(list(found.finals.values())) - np.array(truth)
        assert 0.1 * end < np.sqrt((off**2).mean()) < 2.0 * end
        assert noise_upper(run, 0.0) == 0.0
        assert noise_upper(run, 1.6) == pytest.approx(end * 1.6 / 0.8)
    for terms in ("rounds = 2\nmessage_sigma = 0.1", "rounds = 2"):
        steep = LOGISTIC.replace("rate = 0.5", "rate = 50.0") if "message" not in terms else LOGISTIC
        assert noise_upper(prepared(gossip_learning(4, "ring", terms, task=steep))[0]) is None
    assert noise_upper(prepared(gossip_learning(4, "changing", "rounds = 2\naccelerated = true"))[0]) is None


def test_a_mean_is_learned() -> None:
    text = gossip_learning(4, "complete", 'rounds = 1\npublish = "one"', task=MEAN.replace("rounds = 4", "rounds = 60"))
    run, found, rows = found_of(text)
    rows_together = np.mean([rows(user).features.mean(axis=0) for user in range(4)], axis=0)
    assert truth_of(run, found, rows) == pytest.approx(rows_together, abs=1e-5)


SIGMAS = {"local": 0.8, "central": 0.1}


def test_baselines_without_data() -> None:
    """Noise on each of four users' gradients is half as much on their mean."""
    run, _ = prepared(gossip_learning(4, "ring"))
    told = gossip_baselines_of(run, {"local": 0.8, "central": 0.4})
    assert told["local"]["standard_error"] == pytest.approx(told["central"]["standard_error"])
    assert told["none"] == {"standard_error": [0.0] * 3, "sigma": 0.0}
    assert gossip_baselines_of(run, {"local": None})["local"] == {"standard_error": None, "sigma": None}


@pytest.mark.parametrize("text", [gossip_learning(4, "ring"), gossip_learning(4, "ring", task=LINEAR)])
def test_scores_of_users_models_are_averaged(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, data = prepared(text)
    population = Population(run.plan.descent, [data.user(user) for user in range(4)])
    found = fast_gossip_descent(run, population, 1)
    scores, told, _ = gossip_scored(run, found, data.user, found.truth, SIGMAS, 1)
    each = [[Pool(run, [data.user(user)]).scores(found.finals[one])["loss"] for user in range(4)] for one in range(4)]
    assert scores["loss"] == pytest.approx(np.mean(np.array(each, dtype=float)), rel=0.02), "users have as many rows"
    assert (
        told["none"]["loss"] == Pool(run, [data.user(user) for user in range(4)]).scores(np.array(found.truth))["loss"]
    )
    monkeypatch.setattr(outcome_descent, "_SCORED_MAX", 2)
    fewer, *_ = gossip_scored(run, found, data.user, found.truth, SIGMAS, 1)
    assert fewer["loss"] == pytest.approx(scores["loss"], rel=0.5)


def test_without_noise_baselines_are_the_run_on_a_complete_graph() -> None:
    """One round on it brings all models to their mean, so that the mean gradient is what each step takes."""
    text = gossip_learning(4, "complete", 'rounds = 1\npublish = "all"', task=LOGISTIC, sigma=None)
    run, data = prepared(text)
    found = fast_gossip_descent(run, Population(run.plan.descent, [data.user(user) for user in range(4)]), 1)
    scores, told, _ = gossip_scored(run, found, data.user, None, {"central": 0.0}, 1)
    assert told["central"]["loss"] == pytest.approx(scores["loss"])
    assert told["none"]["score"] == scores["score"]
