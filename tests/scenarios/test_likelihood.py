"""Of Gaussians, whose curve is known."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from tests.support.likelihood import epsilon_lower_end, mu_interval, statistic

DELTA, ERROR = 1e-3, 1e-9


def scores(mu: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=count), random.normal(size=count) + mu


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_lower_end_stays_below_the_curve_and_comes_near(mu: float, sign: float) -> None:
    without, with_ = scores(mu, 100_000, 1)
    low = epsilon_lower_end(sign * without, sign * with_, DELTA, ERROR)
    true = gaussian.epsilon_of(DELTA, mu)
    assert low <= true
    if mu == 1.0:
        assert low > 0.5 * true


def test_what_is_told_apart_always_is_shown_up_to_the_number_of_replays() -> None:
    low = epsilon_lower_end(np.zeros(1000), np.ones(1000), DELTA, ERROR)
    assert 3.0 < low < np.log(500)


@pytest.mark.parametrize("mu", [0.0, 0.2, 1.0, 4.0])
def test_the_interval_holds_mu_and_is_narrow(mu: float) -> None:
    for seed in range(5):
        without, with_ = scores(mu, 40_000, seed)
        low, high = mu_interval(1e6 * without, 1e6 * with_, ERROR)
        assert low <= mu <= high
        assert high - low < 0.15 * (1 + mu)


def test_the_statistic_finds_the_direction_in_correlated_noise() -> None:
    """Two sums share a draw, and their difference tells what neither tells alone; a constant column does no harm."""
    random = np.random.default_rng(3)

    def view(moved: float) -> np.ndarray:
        shared, own = 1e4 * random.normal(size=20_000), random.normal(size=20_000)
        return np.stack([shared, shared + own + moved, np.ones(20_000)], axis=1)

    weights = statistic(view(0.0), view(2.0))
    low, high = mu_interval(view(0.0) @ weights, view(2.0) @ weights, ERROR)
    assert 1.8 < low <= 2.0 <= high


def test_too_few_scores_are_refused() -> None:
    with pytest.raises(UsageError, match="as many"):
        epsilon_lower_end(np.zeros(3), np.zeros(3), DELTA, ERROR)
    with pytest.raises(UsageError, match="as many"):
        epsilon_lower_end(np.zeros(10), np.zeros(12), DELTA, ERROR)
