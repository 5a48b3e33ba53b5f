from __future__ import annotations

import math

import pytest

from p2pdp.core.spec import NoisePart
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.protocols.noise import sigma_of

UNIT = Bounds(0.0, 1.0)


def test_a_deviation_is_taken_as_it_is() -> None:
    assert sigma_of(NoisePart("none"), UNIT, 1) == 0.0
    assert sigma_of(NoisePart("gaussian", sigma=2.5), UNIT, 3) == 2.5


def test_laplace_noise_grows_with_the_numbers_of_a_value() -> None:
    for dimensions in (1, 4):
        sigma = sigma_of(NoisePart("laplace", epsilon=0.5), UNIT, dimensions)
        assert sigma == pytest.approx(dimensions * 2.0 * math.sqrt(2.0))


def test_gaussian_noise_of_an_epsilon_and_delta() -> None:
    """The analytic Gaussian mechanism asks for sigma 3.7306 at epsilon 1 and delta 1e-5."""
    assert sigma_of(NoisePart("gaussian", epsilon=1.0, delta=1e-5), UNIT, 1) == pytest.approx(3.7306316348159)
