"""Gradients against differences of losses; clipped steps contract, as amplification by iteration needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MarginModel, MeanEstimation, limits

ALL: list[Objective] = [MeanEstimation(), LinearRegression(), LogisticRegression()]


def some(seed: int, rows: int = 6, columns: int = 3) -> Examples:
    generator = np.random.default_rng(seed)
    features = generator.uniform(-1, 1, (rows, columns))
    return examples_of(features, np.where(generator.random(rows) < 0.5, -1.0, 1.0), math.sqrt(columns))


@pytest.mark.parametrize("objective", ALL)
def test_the_gradient_is_that_of_the_loss(objective: Objective) -> None:
    examples, model = some(1), np.array([0.3, -0.7, 1.1])
    told = objective.gradient(model, examples)
    for place, unit in enumerate(np.eye(3) * 1e-6):
        slope = (objective.loss(model + unit, examples) - objective.loss(model - unit, examples)) / 2e-6
        assert told[place] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("objective", ALL)
def test_a_wide_clip_changes_nothing_and_a_narrow_one_holds(objective: Objective) -> None:
    examples, model = some(2), np.array([2.0, -5.0, 3.0])
    assert objective.clipped_gradient(model, examples, 1e6) == pytest.approx(objective.gradient(model, examples))
    found = objective.clipped_gradient(model, examples, 0.1)
    assert np.linalg.norm(found) <= 0.1 + 1e-15


@pytest.mark.parametrize("objective", ALL)
def test_each_example_is_clipped_by_itself(objective: Objective) -> None:
    examples, model = some(3), np.array([1.0, 2.0, -1.0])
    each = []
    for row in range(len(examples)):
        one = examples_of(examples.features[row : row + 1], examples.targets[row : row + 1], None)
        gradient = objective.gradient(model, one)
        each.append(gradient * min(1.0, 0.2 / np.linalg.norm(gradient)))
    assert objective.clipped_gradient(model, examples, 0.2) == pytest.approx(np.mean(each, axis=0))


@given(st.integers(0, 10**6), st.floats(0.01, 3.0), st.sampled_from(ALL), st.floats(0.05, 1.0))
def test_a_clipped_step_of_two_over_smoothness_never_moves_models_apart(
    seed: int, clip: float, objective: Objective, part: float
) -> None:
    examples = some(seed)
    smoothness = objective.guarantees(examples.norm_max).smoothness
    assert smoothness is not None
    rate = 2.0 / smoothness * part
    one, other = np.random.default_rng(seed).normal(scale=3.0, size=(2, 3))
    moved = [model - rate * objective.clipped_gradient(model, examples, clip) for model in (one, other)]
    assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(one - other) * (1 + 1e-12)


def test_so_does_no_step_of_a_gradient_that_is_clipped_as_a_whole() -> None:
    """Which is why such clips are refused: a search finds models that are moved apart."""
    worst = 0.0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        features = generator.normal(size=(2, 2)) * [3.0, 0.3]
        examples = examples_of(features, generator.normal(size=2), None)
        smoothness = float((features**2).sum(axis=1).max())
        one = generator.normal(size=2)
        other = one + generator.normal(scale=0.1, size=2)

        def step(model: np.ndarray, examples: Examples = examples, rate: float = 2.0 / smoothness) -> np.ndarray:
            gradient = LinearRegression().gradient(model, examples)
            return model - rate * gradient * min(1.0, 0.05 / float(np.linalg.norm(gradient)))

        worst = max(worst, float(np.linalg.norm(step(one) - step(other)) / np.linalg.norm(one - other)))
    assert worst > 1.0


def test_guarantees_are_the_constants_of_the_losses() -> None:
    assert LogisticRegression().guarantees(2.0).smoothness == 1.0
    assert LogisticRegression().guarantees(2.0).lipschitz == 2.0
    assert LinearRegression().guarantees(2.0).smoothness == 4.0
    assert LinearRegression().guarantees(None).smoothness is None
    assert MeanEstimation().guarantees(None).smoothness == 1.0


def test_scores() -> None:
    examples = examples_of([[1.0], [2.0], [-1.0], [-3.0]], [1.0, 1.0, -1.0, 1.0], None)
    assert LogisticRegression().score(np.array([1.0]), examples) == 0.75
    assert LinearRegression().score(np.array([1.0]), examples_of([[1.0], [2.0]], [1.0, 2.0], None)) == 1.0
    assert LinearRegression().score(np.array([1.0]), examples_of([[1.0], [2.0]], [1.0, 1.0], None)) is None
    assert MeanEstimation().score(np.array([1.0]), examples) is None


def test_extreme_margins_neither_overflow_nor_vanish() -> None:
    logistic = LogisticRegression()
    slopes = logistic.slopes(np.array([1e9, -1e9, 0.0]), np.array([1.0, 1.0, -1.0]))
    assert np.isfinite(slopes).all()
    assert slopes[1] == pytest.approx(-1.0)
    assert slopes[2] == 0.5
    assert np.isfinite(logistic.loss(np.array([1e9]), examples_of([[1.0]], [-1.0], None)))


@pytest.mark.parametrize("objective", ALL)
def test_stacked_examples_give_each_model_its_own_gradient(objective: Objective) -> None:
    sets, models = [some(seed) for seed in range(4)], np.random.default_rng(0).normal(size=(4, 3))
    features, targets = np.stack([one.features for one in sets]), np.stack([one.targets for one in sets])
    clipped = objective.clipped(models, features, targets, 0.4)  # type: ignore[attr-defined]
    for model, one, found in zip(models, sets, clipped, strict=True):
        assert found == pytest.approx(objective.clipped_gradient(model, one, 0.4), abs=1e-14)


def test_limits_of_rows_of_zeros_are_finite() -> None:
    assert np.isfinite(limits(np.zeros((2, 3)), 1.0)).all()
    assert issubclass(LogisticRegression, MarginModel)
