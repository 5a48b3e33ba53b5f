from __future__ import annotations

import pytest

from p2pdp.privacy.contract import account

PAPER = {"epsilon": 10.0, "delta": 1e-6, "lipschitz": 0.4, "n": 2000, "hops": 20_000}


def test_the_numbers_of_section_5_come_out() -> None:
    found = account("sgd_calibration", PAPER)
    assert not found.bound
    outputs = {name: round(value, 2) for name, value in found.outputs.items()}
    assert outputs == {
        "sigma_local": 5.87,
        "sigma_central": 0.70,
        "sigma_network_first": 1.97,
        "sigma_network": 1.23,  # 1.2270, which the paper calls "around 1.22"
    }
    assert found.outputs["sigma_network"] == pytest.approx(1.2270, abs=1e-4)


def test_sigmas_are_proportional_to_the_gradients_bound() -> None:
    once, twice = (account("sgd_calibration", {**PAPER, "lipschitz": bound}).outputs for bound in (0.4, 0.8))
    assert twice == pytest.approx({name: 2 * value for name, value in once.items()})


def test_less_epsilon_asks_for_more_noise() -> None:
    sigmas = [account("sgd_calibration", {**PAPER, "epsilon": epsilon}).outputs for epsilon in (1.0, 3.0, 10.0)]
    for name in sigmas[0]:
        assert sigmas[0][name] > sigmas[1][name] > sigmas[2][name]
