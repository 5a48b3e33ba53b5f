"""The vectorized simulation: the machines' models on its own draws, its law, and its lanes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import p2pdp
from p2pdp.assembly.outcome import truth_of
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.walk.analysis.fast_descent import fast_descents
from p2pdp.tasks.descent import GradientInputs
from tests.support.learners import learning, prepared

SPECS = {
    "complete": learning(5, 30),
    "tokens": learning(4, 15, tokens=3),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3'),
    "batches": learning(3, 20, task='kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nbatch = 2'),
}


@pytest.mark.parametrize("name", SPECS)
def test_models_are_those_of_machines_on_the_same_draws(name: str) -> None:
    """Users' own inputs, step by step along the path that was drawn, with the noise that was drawn."""
    run, data = prepared(SPECS[name])
    plan = run.plan
    (found,) = fast_descents(run, data.user, [11])
    inputs = [GradientInputs(plan.descent, data.user(user)) for user in range(run.n)]
    assert found.paths is not None
    models = []
    for token, path in enumerate(found.paths):
        noise = SeededSampler(11, f"fast/{token}").batch(plan.noise, plan.shape, plan.steps)
        model = plan.descent.zero()
        for step, ((user, visit), drawn) in enumerate(zip(path, noise, strict=True), 1):
            direction = inputs[user].gradient(model, visit) + drawn * plan.descent.step
            model = plan.descent.moved(model, direction, plan.rate_at(step))
        models.append(model)
    assert found.published == pytest.approx(np.mean(models, axis=0), abs=1e-12)


@pytest.mark.parametrize("name", SPECS)
def test_lanes_know_nothing_of_each_other(name: str) -> None:
    run, data = prepared(SPECS[name])
    together = fast_descents(run, data.user, [1, 2, 3])
    alone = [fast_descents(run, data.user, [seed])[0] for seed in (1, 2, 3)]
    for one, other in zip(together, alone, strict=True):
        assert one.published == pytest.approx(other.published, abs=1e-12)
        assert (one.paths, one.counted, one.messages) == (other.paths, other.counted, other.messages)
    assert not np.allclose(together[0].published, together[1].published)


def test_the_truth_that_comes_along_is_that_of_the_paths() -> None:
    run, data = prepared(SPECS["tokens"])
    (found,) = fast_descents(run, data.user, [5])
    told = found.truth
    found.truth = None
    assert truth_of(run, found, data.user) == pytest.approx(told, abs=1e-12)
    quiet, data = prepared(learning(4, 15, tokens=3, sigma=None))
    (bare,) = fast_descents(quiet, data.user, [5])
    assert bare.published == pytest.approx(bare.truth, abs=1e-12)


def test_means_are_those_of_worlds() -> None:
    """Of 30 runs by machines, channels and ledgers, within 5 standard deviations."""
    spec = prepared(learning(3, 8))[0].spec
    slow = p2pdp.simulate(spec, trials=30)
    quick = p2pdp.simulate(spec, trials=600, fast=True)
    assert slow.trials is not None
    assert quick.trials is not None
    some, many = (np.array([one.estimate for one in result.trials]) for result in (slow, quick))  # type: ignore[union-attr]
    error = many.std(axis=0) * np.sqrt(1 / len(some) + 1 / len(many))
    assert np.all(np.abs(some.mean(axis=0) - many.mean(axis=0)) < 5 * error)


def test_trials_differ_only_in_their_seed() -> None:
    spec = prepared(learning(5, 30))[0].spec
    trials = p2pdp.simulate(spec, trials=4, fast=True).trials
    assert trials is not None
    third = p2pdp.simulate(replace(spec, run=replace(spec.run, seed=5)), fast=True)
    assert trials[2].estimate == pytest.approx(third.estimate, abs=1e-12)


def test_its_results_have_scores_and_baselines_in_advance() -> None:
    found = p2pdp.simulate(prepared(learning(5, 200))[0].spec, fast=True)
    assert found.scores is not None
    assert found.scores["score_name"] == "accuracy"
    assert set(found.baselines) == {"local", "central", "none"}
    assert found.baselines["local"]["sigma"] > found.baselines["central"]["sigma"] > 0.0
