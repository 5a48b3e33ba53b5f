from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.mechanisms import gaussian
from tests.support.small_figures import Run


def test_printed_leaks_fall_with_users_and_the_proved_epsilon_does_not() -> None:
    run = Run("004-fig1c")
    few, many = run.answers["n-40"], run.answers["n-80"]
    assert many["printed_leak_mean"] < few["printed_leak_mean"]
    assert few["epsilon_sound"] == many["epsilon_sound"]
    assert few["epsilon_sound"] == pytest.approx(gaussian.epsilon_of(1e-6, 0.5 * math.sqrt(10)))
    for found in (few, many):
        assert np.shape(found["gossip"]) == np.shape(found["trusted"]) == (10, 2)
        assert 0.3 < np.mean(found["trusted"][-1]) <= 1.0
