from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.tasks.descent import Descent, GradientInputs, batches
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MeanEstimation

SECRET = 314159.25


def descent(objective: Objective | None = None, **terms: Any) -> Descent:
    chosen = objective or LogisticRegression()
    given = {"dimension": 2, "clip": 0.5, "grid_exponent": -30, **terms}
    return Descent(objective=chosen, guarantees=chosen.guarantees(2.0), **given)


def table(rows: int = 5, seed: int = 0) -> Examples:
    generator = np.random.default_rng(seed)
    return examples_of(generator.uniform(-1, 1, (rows, 2)), generator.choice([-1.0, 1.0], rows), 2.0)


@pytest.mark.parametrize("objective", [LogisticRegression(), LinearRegression(), MeanEstimation()])
@given(st.integers(0, 1000), st.floats(0.01, 2.0))
def test_contributions_are_within_the_clip_and_on_the_grid(objective: Objective, seed: int, clip: float) -> None:
    steps = descent(objective, clip=clip)
    model = np.random.default_rng(seed).normal(scale=4.0, size=2)
    found = GradientInputs(steps, table(seed=seed)).gradient(model, 0)
    assert np.linalg.norm(found) <= clip + math.sqrt(2) * steps.step
    assert np.all(found / steps.step == np.rint(found / steps.step))
    assert found == pytest.approx(steps.contribution(model, table(seed=seed)), abs=steps.step)


def test_replacing_a_user_moves_a_contribution_by_the_sensitivity_at_most() -> None:
    steps = descent(clip=0.5, grid_exponent=-3)  # so coarse that rounding shows
    model, worst = np.array([0.3, -0.2]), 0.0
    for seed in range(200):
        scale = 10.0 ** np.random.default_rng(seed).uniform(0, 3)
        sets = [examples_of(table(seed=seed + k).features * scale, table(seed=seed + k).targets, None) for k in (0, 1)]
        one, other = (GradientInputs(steps, examples).gradient(model, 0) for examples in sets)
        worst = max(worst, float(np.linalg.norm(one - other)))
    assert worst <= steps.sensitivity * steps.step
    assert steps.sensitivity * steps.step == pytest.approx(2 * 0.5 + math.sqrt(2) / 8)


def test_a_step_pulls_to_zero_and_stays_in_the_radius() -> None:
    steps = descent(regularization=0.5, radius=1.0)
    assert steps.moved(np.array([0.4, 0.0]), np.array([0.1, 0.2]), 0.1).tolist() == pytest.approx([0.37, -0.02])
    found = steps.moved(np.array([0.4, 0.0]), np.array([-100.0, 0.0]), 1.0)
    assert found.tolist() == pytest.approx([1.0, 0.0])
    assert descent().moved(np.array([0.4]), np.array([-100.0]), 1.0).tolist() == [100.4]


class Positive(LogisticRegression):
    def project(self, model: Any) -> Any:
        return np.maximum(model, 0.0)


def test_an_objective_projects_before_the_radius_does() -> None:
    steps = Descent(Positive(), Positive().guarantees(1.0), 2, 0.5, -30, radius=2.0)
    assert steps.moved(np.zeros(2), np.array([-9.0, 9.0]), 1.0).tolist() == [2.0, 0.0]


def test_batches_take_rows_cyclically() -> None:
    assert batches(5, None) == batches(5, 5) == batches(5, 9) == [None]
    assert [rows.tolist() for rows in batches(4, 2)] == [[0, 1], [2, 3]]
    assert [rows.tolist() for rows in batches(3, 2)] == [[0, 1], [2, 0], [1, 2]]
    steps = descent(batch=2, clip=10.0)
    inputs, model = GradientInputs(steps, table()), np.array([0.1, 0.2])
    found = [inputs.gradient(model, visit) for visit in range(10)]
    assert all(np.array_equal(found[visit], found[visit + 5]) for visit in range(5))
    whole = GradientInputs(replace(steps, batch=None), table()).gradient(model, 0)
    assert np.mean(found[:5], axis=0) == pytest.approx(whole, abs=1e-8)


def test_what_is_given_is_never_changed() -> None:
    steps, examples = descent(regularization=0.1, radius=0.1), table()
    before, model = examples.features.copy(), np.array([1.0, 2.0])
    inputs = GradientInputs(steps, examples)
    direction = inputs.gradient(model, 0)
    kept = direction.copy()
    inputs.moved(model, direction, 0.3)
    assert model.tolist() == [1.0, 2.0]
    assert np.array_equal(direction, kept)
    assert np.array_equal(examples.features, before)
    assert inputs.zero().tolist() == [0.0, 0.0]


def test_learners_have_no_plain_contributions_and_show_no_values() -> None:
    inputs = GradientInputs(descent(), examples_of([[SECRET, 1.0]], [1.0], None))
    with pytest.raises(TypeError):
        inputs.contribution(0)
    with pytest.raises(TypeError):
        inputs.report(0, -1)
    assert repr(inputs) == "GradientInputs(1 examples)"
