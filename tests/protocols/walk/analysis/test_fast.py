"""The vectorized simulation: the machines' models on its own draws, its law, and its lanes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.assembly.outcome import estimate_of, truth_of
from p2pdp.core.arrays import Floats
from p2pdp.core.messages import TOKEN
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.records import SENT, public_message, read
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.fast import fast_descents, fast_outcome
from p2pdp.sim.world import World
from p2pdp.tasks.descent import GradientInputs
from tests.support.learners import learning
from tests.support.learners import prepared as learners
from tests.support.outcomes import outcome
from tests.support.small import ALL, BARE, COMPLETE, HISTOGRAM, RING, SPARSE


def prepared(text: str, *overrides: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None, overrides)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data.user


def numbers(run: RunPlan, rows: Any, found: Any) -> list[float]:
    """Estimate, truth, messages and visits as one row."""
    visits = [float(sum(times.values())) for _, times in sorted(found.counted.items())]
    estimate, truth = np.atleast_1d(estimate_of(run, found).value), np.atleast_1d(truth_of(run, found, rows))
    return [*estimate.tolist(), *truth.tolist(), *visits]


def in_the_world(run: RunPlan, rows: Any, seed: int) -> tuple[list[float], int]:
    world = World(run, rows, "", spec_digest(run.spec), seed)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    carried = sum(
        record.kind == SENT and public_message(record).type == TOKEN
        for peer, view in views.items()
        if peer >= 0
        for record in read(view).records
    )
    return numbers(run, rows, outcome(run, views, [])), carried


@pytest.mark.parametrize("name", ALL)
def test_the_distribution_is_that_of_the_world(name: str) -> None:
    """Same data and graph, other randomness: means and spreads agree within 5 standard deviations."""
    run, rows = prepared(ALL[name])
    slow, carried = zip(*(in_the_world(run, rows, seed) for seed in range(100)), strict=True)
    outcomes = [fast_outcome(run, rows, seed) for seed in range(2000)]
    quick = np.array([numbers(run, rows, found) for found in outcomes])
    assert_alike(np.array(slow), quick)
    sent = np.array([[float(found.messages)] for found in outcomes])
    assert_alike(np.array(carried, dtype=float)[:, None], sent)


def assert_alike(some: Floats, many: Floats) -> None:
    spread = many.std(axis=0)
    error = spread * math.sqrt(1 / len(some) + 1 / len(many)) + 1e-6
    assert np.all(np.abs(some.mean(axis=0) - many.mean(axis=0)) < 5 * error)
    # The variance of a sample variance is at most (kurtosis - 1) s^4 / count.
    centred = many - many.mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    slack = 5 * np.sqrt(np.maximum(fourth - spread**4, 0.0) / len(some)) + 1e-6
    assert np.all(np.abs(some.var(axis=0) - spread**2) < slack + 0.1 * spread**2)


def test_one_seed_is_one_outcome() -> None:
    for text in ALL.values():
        run, rows = prepared(text)
        first, again, other = (numbers(run, rows, fast_outcome(run, rows, seed)) for seed in (1, 1, 2))
        assert first == again
        assert first != other or text == BARE


def test_without_noise_the_estimate_is_the_truth() -> None:
    run, rows = prepared(BARE)
    found = fast_outcome(run, rows, 1)
    assert estimate_of(run, found).value == pytest.approx(truth_of(run, found, rows), abs=1e-6)
    text = HISTOGRAM.replace('"randomized_response"\nepsilon = 1.0', '"none"')
    run, rows = prepared(text)
    found = fast_outcome(run, rows, 1)
    assert estimate_of(run, found).value == truth_of(run, found, rows)


@pytest.mark.parametrize("text", [RING, COMPLETE, SPARSE])
def test_every_step_has_its_visit(text: str) -> None:
    run, rows = prepared(text)
    for seed in range(20):
        found = fast_outcome(run, rows, seed)
        assert found.contributions == run.plan.steps * run.plan.tokens
        assert found.messages <= run.plan.steps * run.plan.tokens
    if text == RING:
        assert found.messages == (run.plan.steps - 1) * run.plan.tokens


def test_values_are_used_cyclically() -> None:
    run, _ = prepared(RING)

    class Three:
        rows = np.array([0.25, 0.5, 1.0])

    three = Three()
    found = fast_outcome(run, lambda _user: three, 1)
    assert found.counted == {user: {0: 1, 1: 1} for user in range(4)}
    assert truth_of(run, found, lambda _user: three) == 4 * 0.75


@pytest.mark.parametrize("kind", ["path", "complete"])
def test_a_user_alone_keeps_the_token(kind: str) -> None:
    for tokens in (1, 2):
        run, rows = prepared(COMPLETE, "run.nodes=1", f'graph.kind="{kind}"', f"walk.tokens={tokens}")
        found = fast_outcome(run, rows, 1)
        assert (found.contributions, found.messages) == (20 * tokens, 0)


SPECS = {
    "complete": learning(5, 30),
    "tokens": learning(4, 15, tokens=3),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3'),
    "batches": learning(3, 20, task='kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nbatch = 2'),
}


@pytest.mark.parametrize("name", SPECS)
def test_models_are_those_of_machines_on_the_same_draws(name: str) -> None:
    """Users' own inputs, step by step along the path that was drawn, with the noise that was drawn."""
    run, data = learners(SPECS[name])
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
    run, data = learners(SPECS[name])
    together = fast_descents(run, data.user, [1, 2, 3])
    alone = [fast_descents(run, data.user, [seed])[0] for seed in (1, 2, 3)]
    for one, other in zip(together, alone, strict=True):
        assert one.published == pytest.approx(other.published, abs=1e-12)
        assert (one.paths, one.counted, one.messages) == (other.paths, other.counted, other.messages)
    assert not np.allclose(together[0].published, together[1].published)


def test_the_truth_that_comes_along_is_that_of_the_paths() -> None:
    run, data = learners(SPECS["tokens"])
    (found,) = fast_descents(run, data.user, [5])
    told = found.truth
    found.truth = None
    assert truth_of(run, found, data.user) == pytest.approx(told, abs=1e-12)
    quiet, data = learners(learning(4, 15, tokens=3, sigma=None))
    (bare,) = fast_descents(quiet, data.user, [5])
    assert bare.published == pytest.approx(bare.truth, abs=1e-12)


def test_means_are_those_of_worlds() -> None:
    """Of 30 runs by machines, channels and ledgers, within 5 standard deviations."""
    spec = learners(learning(3, 8))[0].spec
    slow = p2pdp.simulate(spec, trials=30)
    quick = p2pdp.simulate(spec, trials=600, fast=True)
    assert slow.trials is not None
    assert quick.trials is not None
    some, many = (np.array([one.estimate for one in result.trials]) for result in (slow, quick))  # type: ignore[union-attr]
    error = many.std(axis=0) * np.sqrt(1 / len(some) + 1 / len(many))
    assert np.all(np.abs(some.mean(axis=0) - many.mean(axis=0)) < 5 * error)


def test_trials_differ_only_in_their_seed() -> None:
    spec = learners(learning(5, 30))[0].spec
    trials = p2pdp.simulate(spec, trials=4, fast=True).trials
    assert trials is not None
    third = p2pdp.simulate(replace(spec, run=replace(spec.run, seed=5)), fast=True)
    assert trials[2].estimate == pytest.approx(third.estimate, abs=1e-12)


def test_its_results_have_scores_and_baselines_in_advance() -> None:
    found = p2pdp.simulate(learners(learning(5, 200))[0].spec, fast=True)
    assert found.scores is not None
    assert found.scores["score_name"] == "accuracy"
    assert set(found.baselines) == {"local", "central", "none"}
    assert found.baselines["local"]["sigma"] > found.baselines["central"]["sigma"] > 0.0
