"""Against exact curves of two-component mixtures, quadrature of a few steps, and the plain Gaussian at both ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.sampled import RATIO_MAX, SampledSteps


def mixture_delta(epsilon: float, ratio: float, others: int, steps: int) -> float:
    """Of a user's value 0 against `ratio` while all others are at 0: a lower end, by quadrature over all steps."""
    grid = np.linspace(-9.0, ratio + 9.0, 700)
    width = grid[1] - grid[0]
    none = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    some = (1 - 1 / others) * none + np.exp(-((grid - ratio) ** 2) / 2) / math.sqrt(2 * math.pi) / others
    one, other = np.ones(1), np.ones(1)
    for _ in range(steps):
        one, other = np.outer(one, some * width).ravel(), np.outer(other, none * width).ravel()
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.parametrize("others", [2, 10])
@pytest.mark.parametrize("ratio", [0.3, 1.5])
@pytest.mark.parametrize("steps", [1, 2])
def test_it_is_above_what_mixtures_really_tell_and_not_far(ratio: float, others: int, steps: int) -> None:
    delta = 1e-4
    found = SampledSteps(ratio, others, steps, delta).known(0)
    assert mixture_delta(found, ratio, others, steps) <= delta * (1 + 1e-3)  # the quadrature has an error
    assert mixture_delta(found * 0.5, ratio, others, steps) > delta


def test_known_steps_are_gaussians() -> None:
    for k in (1, 4):
        found = SampledSteps(0.7, 50, 0, 1e-6).known(k)
        exact = gaussian.epsilon_of(1e-6, 0.7 * math.sqrt(k))
        assert exact <= found <= exact * 1.01
    assert SampledSteps(0.7, 50, 0, 1e-6).known(0) == 0.0


def test_with_one_other_user_nothing_is_secret() -> None:
    found = SampledSteps(0.4, 1, 9, 1e-6).known(0)
    assert found == pytest.approx(gaussian.epsilon_of(1e-6, 0.4 * 3), rel=0.01)
    assert found >= gaussian.epsilon_of(1e-6, 0.4 * 3)


def test_more_steps_fewer_others_and_known_ones_tell_more() -> None:
    base = SampledSteps(0.8, 40, 200, 1e-6)
    assert base.known(0) < base.known(1) < base.known(2)
    assert SampledSteps(0.8, 40, 400, 1e-6).known(0) > base.known(0)
    assert SampledSteps(0.8, 20, 200, 1e-6).known(0) > base.known(0)
    assert SampledSteps(0.8, 40, 200, 1e-3).known(0) < base.known(0)


def test_chances_are_averaged_and_what_they_leave_out_is_lost() -> None:
    steps = SampledSteps(0.8, 40, 200, 1e-6)
    assert steps.averaged([1.0]) == pytest.approx(steps.known(0), rel=1e-3)
    assert steps.averaged([0.0, 1.0]) == pytest.approx(steps.known(1), rel=1e-3)
    assert steps.known(0) < steps.averaged([0.99, 0.01]) < steps.known(1)
    assert steps.averaged([0.5]) == math.inf
    assert steps.averaged([1.0 - 5e-7]) > steps.known(0)


def test_noise_that_is_far_too_small_is_infinite() -> None:
    steps = SampledSteps(2 * RATIO_MAX, 40, 200, 1e-6)
    assert steps.known(0) == steps.averaged([1.0]) == math.inf


def test_a_subsampled_gaussian_is_not_far_above_the_known_answer() -> None:
    """(q, sigma, steps, delta) = (0.01, 1, 1000, 1e-6): 1.828 for adding a user; replacing one is up to twice that."""
    found = SampledSteps(1.0, 100, 1000, 1e-6).known(0)
    assert 1.828 < found < 2 * 1.828
