from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account


@pytest.mark.parametrize(("sigma", "delta", "epsilon"), [(1.0, 1e-5, 4.37717809568122), (4.0, 1e-6, 1.06070186232827)])
def test_known_answers(sigma: float, delta: float, epsilon: float) -> None:
    found = account("gaussian", {"sigma": sigma, "delta": delta})
    assert found.outputs["epsilon"] == pytest.approx(epsilon, rel=1e-11)
    assert found.outputs["epsilon"] >= gaussian.epsilon_of(delta, 1.0 / sigma) * (1 - 1e-15)
    assert found.bound
    assert account("gaussian", {"mu": 1.0 / sigma, "delta": delta}).outputs == found.outputs


def test_mu_and_sigma_are_two_names_of_one_thing() -> None:
    for both in ({}, {"mu": 1.0, "sigma": 1.0}):
        with pytest.raises(UsageError, match="give either mu or sigma"):
            account("gaussian", {"delta": 1e-5, **both})


def test_no_leak_has_epsilon_0() -> None:
    assert account("gaussian", {"mu": 0.0, "delta": 1e-300}).outputs["epsilon"] == 0.0
