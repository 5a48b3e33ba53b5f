"""The vectorized simulation of learning by gossip: the world's own models on a graph that stays, and trials."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.assembly.outcome import truth_of
from p2pdp.protocols.gossip.analysis.fast_descent import fast_gossip_descent, matrices_of
from p2pdp.tasks.descending import Population
from tests.support.gossip_learners import LINEAR, MEAN, gossip_learning
from tests.support.gossip_world import room
from tests.support.learners import prepared

BATCHES = 'kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nrounds = 4\nbatch = 2\nschedule = "inverse"'
SPECS = {
    "ring": gossip_learning(),
    "accelerated": gossip_learning(6, "star", "rounds = 3\naccelerated = true", task=LINEAR),
    "published": gossip_learning(4, "complete", 'rounds = 1\npublish = "all"', task=BATCHES),
    "one": gossip_learning(4, "path", 'rounds = 2\npublish = "one"', task=MEAN),
    "quiet": gossip_learning(4, "path", sigma=None),
    "alone": gossip_learning(1, "complete"),
}


def fast(text: str, seed: int = 3) -> Any:
    run, data = prepared(text)
    return fast_gossip_descent(run, Population(run.plan.descent, [data.user(user) for user in range(run.n)]), seed)


@pytest.mark.parametrize("name", SPECS)
def test_it_is_what_the_world_gives_on_the_same_seed(name: str) -> None:
    run, data = prepared(SPECS[name])
    slow = p2pdp.simulate(run.spec)
    found = fast(SPECS[name])
    outputs = np.array([output["value"] for output in slow.outputs])
    np.testing.assert_allclose(np.array(list(found.finals.values())), outputs, rtol=0, atol=room(run.plan))
    np.testing.assert_allclose(truth_of(run, found, data.user), slow.truth, rtol=0, atol=1e-12)
    assert found.counted == {user: {0: run.plan.gradients} for user in range(run.n)}


def test_noise_on_messages_is_as_much_as_was_asked_for() -> None:
    """What it adds to a ring's only round is 2/9 of its variance in each number of each user's model."""
    task = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.5\nrounds = 1'
    text = gossip_learning(6, "ring", "rounds = 1\nmessage_sigma = 0.7", task=task, sigma=0.1)
    plain = gossip_learning(6, "ring", "rounds = 1", task=task, sigma=0.1)
    off = [np.array(list(fast(text, seed).finals.values())) - np.array(list(fast(plain, seed).finals.values()))
           for seed in range(100)]  # fmt: skip
    assert np.std(off) == pytest.approx(0.7 * np.sqrt(2) / 3, rel=0.1)


def test_meetings_are_drawn_anew_for_each_round_and_seed() -> None:
    run, _ = prepared(gossip_learning(5, "changing"))
    one, again, other = (list(matrices_of(run, seed)) for seed in (1, 1, 2))
    assert all((a != b).nnz == 0 for a, b in zip(one, again, strict=True))
    assert any((a != b).nnz for a, b in zip(one, other, strict=True))
    assert any((a != b).nnz for a, b in pairwise(one))


def test_trials_have_their_seeds(tmp_path: Path) -> None:
    spec = prepared(gossip_learning(5, "changing", 'rounds = 2\npublish = "one"'))[0].spec
    result = p2pdp.simulate(spec, tmp_path / "fast", trials=3, fast=True)
    assert result.trials is not None
    assert [len(trial.estimate or ()) for trial in result.trials] == [3, 3, 3]  # type: ignore[arg-type]
    assert result.trials[0].estimate != result.trials[1].estimate
    third = fast(gossip_learning(5, "changing", 'rounds = 2\npublish = "one"'), 5)
    assert result.trials[2].estimate == pytest.approx(third.finals[0].tolist())
    document = json.loads((tmp_path / "fast" / "result.json").read_text())
    assert document["scores"]["score_name"] == "accuracy"
    assert set(document["baselines"]) == {"local", "central", "none"}
