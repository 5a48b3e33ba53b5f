from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms.rows import packed
from p2pdp.tasks.descent import Descent, GradientInputs, RowCounts, batches
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MeanEstimation

SECRET = 314159.25


class Own(Objective):
    """Whose gradient is shortened as a whole, unless it is that of one row."""

    def gradient(self, model: Any, examples: Examples) -> Any:
        return (model - examples.features).mean(axis=0) * 3.0


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


def of_records(batch: int | None = None, **terms: Any) -> Descent:
    return descent(batch=batch, records=RowCounts(batch or 5, 5, 5), **terms)


@pytest.mark.parametrize("objective", [LogisticRegression(), LinearRegression(), MeanEstimation(), Own()])
@given(st.integers(0, 1000), st.lists(st.booleans(), min_size=5, max_size=5))
def test_a_contribution_over_drawn_rows_is_the_sum_of_their_gradients(
    objective: Objective, seed: int, bits: list[bool]
) -> None:
    steps = of_records(2, objective=objective)
    model, examples = np.random.default_rng(seed).normal(size=2), table(seed=seed)
    found = GradientInputs(steps, examples).gradient(model, 0, packed(np.array([bits]))[0])
    each = [objective.clipped_sum(model, examples_of(examples.features[[k]], examples.targets[[k]], None), 0.5)
            for k in np.flatnonzero(bits)]  # fmt: skip
    assert all(np.linalg.norm(one) <= 0.5 * (1.0 + 1e-12) for one in each)
    assert found == pytest.approx(sum(each, start=np.zeros(2)) / 2, abs=2.0 * steps.step)
    assert np.all(found / steps.step == np.rint(found / steps.step))


@given(st.integers(0, 10_000), st.lists(st.booleans(), min_size=5, max_size=5), st.sampled_from([None, 2, 3]))
def test_a_replaced_row_moves_a_contribution_by_the_sensitivity_and_one_that_leaves_by_its_part(
    seed: int, bits: list[bool], batch: int | None
) -> None:
    steps = of_records(batch, grid_exponent=-4)  # so coarse that rounding shows
    generator = np.random.default_rng(seed)
    model, examples = generator.normal(size=2), table(seed=seed)
    features, targets = examples.features.copy(), examples.targets.copy()
    features[2], targets[2] = 10.0 ** generator.uniform(-1, 3) * generator.normal(size=2), -targets[2]
    rows = None if batch is None else packed(np.array([bits]))[0]
    one = GradientInputs(steps, examples).gradient(model, 0, rows)
    other = GradientInputs(steps, examples_of(features, targets, None)).gradient(model, 0, rows)
    features[2] = 0.0  # which makes its gradient 0
    without = GradientInputs(steps, examples_of(features, targets, None)).gradient(model, 0, rows)
    assert np.linalg.norm(one - other) <= steps.sensitivity * steps.step
    assert np.linalg.norm(one - without) <= steps.part * steps.step
    assert steps.part < steps.sensitivity


def test_the_sensitivity_of_a_row_is_that_of_its_share() -> None:
    assert of_records().sensitivity * 2.0**-30 == pytest.approx(2 * 0.5 / 5, rel=1e-6)
    assert of_records(2).sensitivity * 2.0**-30 == pytest.approx(2 * 0.5 / 2, rel=1e-6)
    assert of_records(2).part * 2.0**-30 == pytest.approx(0.5 / 2, rel=1e-6)
    assert of_records(2).reach == pytest.approx(0.5 * 5 / 2)


def test_where_no_rows_are_drawn_a_contribution_is_what_is_expected() -> None:
    model, examples = np.array([0.3, -0.2]), table()
    whole = GradientInputs(of_records(), examples).gradient(model, 0)
    assert GradientInputs(of_records(2), examples).gradient(model, 0) == pytest.approx(whole, abs=2.0**-29)
    assert GradientInputs(of_records(10), examples).gradient(model, 0) == pytest.approx(whole / 2.0, abs=2.0**-29)
    assert of_records(2).drawn(5) is not None
    assert of_records(10).drawn(5) is None
    assert descent(batch=2).share(5) == 1.0
    nobody = GradientInputs(of_records(2), examples).gradient(model, 0, packed(np.zeros((1, 5), dtype=np.bool_))[0])
    assert not nobody.any()
