from __future__ import annotations

import numpy as np
import pytest

from p2pdp.assembly.pools import Pool
from p2pdp.protocols.gossip.analysis import scores as gossip_learned
from p2pdp.protocols.gossip.analysis.fast_descent import fast_gossip_descent
from p2pdp.protocols.gossip.analysis.scores import gossip_baselines_of, gossip_scored
from p2pdp.tasks.descending import Population
from tests.support.gossip_learners import LINEAR, LOGISTIC, gossip_learning
from tests.support.learners import prepared

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
    scores, told = gossip_scored(run, found, data.user, found.truth, SIGMAS, 1)
    each = [[Pool(run, [data.user(user)]).scores(found.finals[one])["loss"] for user in range(4)] for one in range(4)]
    assert scores["loss"] == pytest.approx(np.mean(np.array(each, dtype=float)), rel=0.02), "users have as many rows"
    assert (
        told["none"]["loss"] == Pool(run, [data.user(user) for user in range(4)]).scores(np.array(found.truth))["loss"]
    )
    monkeypatch.setattr(gossip_learned, "_SCORED_MAX", 2)
    fewer, _ = gossip_scored(run, found, data.user, found.truth, SIGMAS, 1)
    assert fewer["loss"] == pytest.approx(scores["loss"], rel=0.5)


def test_without_noise_baselines_are_the_run_on_a_complete_graph() -> None:
    """One round on it brings all models to their mean, so that the mean gradient is what each step takes."""
    text = gossip_learning(4, "complete", 'rounds = 1\npublish = "all"', task=LOGISTIC, sigma=None)
    run, data = prepared(text)
    found = fast_gossip_descent(run, Population(run.plan.descent, [data.user(user) for user in range(4)]), 1)
    scores, told = gossip_scored(run, found, data.user, None, {"central": 0.0}, 1)
    assert told["central"]["loss"] == pytest.approx(scores["loss"])
    assert told["none"]["score"] == scores["score"]
