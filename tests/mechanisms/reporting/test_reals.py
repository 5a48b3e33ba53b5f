from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.reporting.contract import MalformedReport, drawn_of
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.mechanisms.sampler import SeededSampler

UNIT = Bounds(0.0, 1.0)


@given(epsilon=st.floats(1e-3, 50.0), low=st.floats(-1e3, 1e3), span=st.floats(1e-3, 1e3), d=st.integers(1, 20))
def test_laplace_spends_epsilon_exactly(epsilon: float, low: float, span: float, d: int) -> None:
    """The ratio of two discrete Laplace laws on the grid is e^(steps between them / scale)."""
    made = RealReports(Bounds(low, low + span), d, "laplace", epsilon=epsilon)
    ends = made.applied(np.array([[made.bounds.low] * d, [made.bounds.high] * d]), [])
    steps = int(np.abs(ends[1] - ends[0]).sum())
    assert made.epsilon is not None
    assert steps / made.noise.scale <= made.epsilon * (1 + 1e-15)
    assert epsilon * (1 - 1e-5) <= made.epsilon <= epsilon * (1 + 1e-15)


def test_gaussian_noise_has_no_pure_epsilon_and_a_mu() -> None:
    made = RealReports(UNIT, 3, "gaussian", epsilon=1.0, delta=1e-5)
    assert made.epsilon is None
    assert gaussian.epsilon_of(1e-5, made.mu) == pytest.approx(1.0, rel=1e-5)
    assert gaussian.epsilon_of(1e-5, made.mu) <= 1.0
    assert RealReports(UNIT, 1, "gaussian", sigma=2.0).mu == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_sigma_is_the_standard_deviation(mechanism: str) -> None:
    made = RealReports(Bounds(-1.0, 2.0), 2, mechanism, sigma=0.7)
    assert made.noise_variance == pytest.approx(0.49)
    drawn = drawn_of(made.needs, 50_000, SeededSampler(3, "real"))
    weights = made.weights(made.applied(np.full((50_000, 2), 0.25), drawn))
    assert weights.mean(axis=0) == pytest.approx([0.25, 0.25], abs=6 * 0.7 / 50_000**0.5)
    assert weights.std(axis=0) == pytest.approx([0.7, 0.7], rel=0.05)


def test_without_noise_the_value_is_told() -> None:
    plain = RealReports(UNIT, 1, "none")
    assert (plain.epsilon, plain.noise_variance) == (math.inf, 0.0)
    np.testing.assert_allclose(plain.weights(plain.applied(np.array([[0.625]]), [])), [[0.625]], atol=1e-6)


def test_a_dummy_is_the_middle() -> None:
    plain = RealReports(Bounds(-1.0, 3.0), 2, "none")
    np.testing.assert_allclose(plain.weights(plain.dummies(2, [])), np.ones((2, 2)), atol=1e-6)


def test_values_outside_are_refused_and_not_shown() -> None:
    made = RealReports(UNIT, 1, "laplace", epsilon=1.0)
    drawn = drawn_of(made.needs, 1, SeededSampler(1, "x"))
    for wrong in ([[1.0625]], [[-0.0625]], [[math.nan]], [[0.5, 0.5]]):
        with pytest.raises(UsageError, match="within the clipping bounds") as caught:
            made.applied(np.array(wrong), drawn)
        assert "0625" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [{}, {"sigma": 1.0, "epsilon": 1.0}, {"epsilon": math.nan}, {"sigma": 0.0}, {"sigma": math.inf}],
)
def test_noise_that_cannot_be_is_refused(words: dict[str, float]) -> None:
    for mechanism in ("laplace", "gaussian"):
        with pytest.raises(UsageError):
            RealReports(UNIT, 1, mechanism, **words)
    with pytest.raises(UsageError, match="delta"):
        RealReports(UNIT, 1, "gaussian", epsilon=1.0)
    with pytest.raises(UsageError, match="privunit"):
        RealReports(UNIT, 1, "privunit", epsilon=1.0)


def test_numbers_beyond_any_value_are_malformed() -> None:
    made = RealReports(UNIT, 1, "none")
    with pytest.raises(MalformedReport):
        made.decode((2**62 + 1).to_bytes(8, "big", signed=True))
