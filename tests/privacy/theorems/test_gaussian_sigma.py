from __future__ import annotations

import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.1, 1e-6, 36.3046904261959), (1.0, 1e-5, 3.7306316348159), (5.0, 1e-6, 0.9800490003092)],
)
def test_known_answers(epsilon: float, delta: float, sigma: float) -> None:
    found = account("gaussian_sigma", {"epsilon": epsilon, "delta": delta})
    assert found.outputs["sigma"] == pytest.approx(sigma, rel=2e-11)
    doubled = account("gaussian_sigma", {"epsilon": epsilon, "delta": delta, "sensitivity": 2.0})
    assert doubled.outputs["sigma"] == pytest.approx(2 * sigma, rel=2e-11)


@given(epsilon=st.floats(0.001, 50.0), power=st.floats(-12.0, -0.5))
def test_it_is_enough_and_hardly_more_than_enough(epsilon: float, power: float) -> None:
    found = account("gaussian_sigma", {"epsilon": epsilon, "delta": 10.0**power}).outputs
    assert gaussian.delta_of(epsilon, 1.0 / found["sigma"]) <= 10.0**power * (1 + 1e-11)
    assert gaussian.delta_of(epsilon, 1.0001 / found["sigma"]) > 10.0**power


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_it_agrees_with_a_public_oracle(epsilon: float) -> None:
    oracle = gaussian_mechanism.get_sigma_gaussian(epsilon, 1e-6)
    assert account("gaussian_sigma", {"epsilon": epsilon, "delta": 1e-6}).outputs["sigma"] == pytest.approx(
        oracle, rel=1e-6
    )
