"""Against all walks of a few steps, one by one, and against the closed form of guide/accounting.md."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from p2pdp.accounting.iteration import mean_inverse_gap
from p2pdp.accounting.iteration_walk import Exposure, epsilon, log_moment
from p2pdp.mechanisms import gaussian

CASES = [Exposure(n, steps, starts, watched) for n, steps in ((2, 5), (3, 6), (5, 5)) for starts in (False, True)
         for watched in (True, False)]  # fmt: skip


def costs(exposure: Exposure, walk: tuple[int, ...]) -> float:
    """Sum 1/G over the contributions of user 1, which user 0 watches; the token is seen at visits of both."""
    users = ([1] if exposure.starts else []) + list(walk)
    looks = {1, 0} if exposure.watched else {1}
    total = 0.0
    for place, user in enumerate(users):
        if user == 1:
            after = next((later for later in range(place + 1, len(users)) if users[later] in looks), len(users))
            total += 1.0 / (after - place)
    return total


def everything(exposure: Exposure) -> list[float]:
    return [costs(exposure, walk) for walk in product(range(exposure.n), repeat=exposure.steps)]


@pytest.mark.parametrize("exposure", CASES)
@pytest.mark.parametrize("exponent", [1e-3, 0.1, 1.0, 5.0])
def test_the_moment_bounds_that_of_all_walks(exposure: Exposure, exponent: float) -> None:
    exact = math.log(np.mean(np.exp(exponent * np.array(everything(exposure)))))
    bound = float(log_moment(np.array([exponent]), exposure, 1e-30)[0])
    assert exact <= bound * (1 + 1e-9)
    if exponent <= 0.1:
        assert bound <= exact * 1.1, "and it is nearly met where contributions are small"


@pytest.mark.parametrize("exposure", CASES)
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
@pytest.mark.parametrize("ratio", [0.1, 0.7])
def test_linear_losses_leak_less_than_epsilon(exposure: Exposure, ratio: float, delta: float) -> None:
    """With constant gradients a gap is a noised sum: the very curve, averaged over all walks."""
    found = epsilon(ratio, exposure, 1, delta)
    total = 0.0
    for walk in product(range(exposure.n), repeat=exposure.steps):
        users = ([1] if exposure.starts else []) + list(walk)
        gaps = [[]] if not exposure.watched or users[0] != 0 else []
        for user in users:
            if user == 0 and exposure.watched:
                gaps.append([])
            elif gaps:
                gaps[-1].append(user)
        mu = ratio * math.sqrt(sum(gap.count(1) ** 2 / len(gap) for gap in gaps if gap))
        total += gaussian.delta_of(found, mu)
    assert total / exposure.n**exposure.steps <= delta


def test_it_is_below_the_closed_form_and_covers_who_starts() -> None:
    """Section 2 of the notes: 8 N alpha L^2 ln(n/2) / (sigma^2 (n - 2)), of which E[1/G] is the heart."""
    n, steps, x = 100, 10_000, 1e-4
    moment = float(log_moment(np.array([x]), Exposure(n, steps, starts=False), 1e-15)[0])
    assert moment / x == pytest.approx(steps / n * mean_inverse_gap(n), rel=0.03)
    more = float(log_moment(np.array([x]), Exposure(n, steps, starts=True), 1e-15)[0])
    assert moment / x < more / x < moment / x + 1.5 * mean_inverse_gap(n)


def test_more_noise_fewer_steps_and_a_larger_delta_cost_less() -> None:
    base = epsilon(0.5, Exposure(50, 500, starts=False), 1, 1e-6)
    assert epsilon(0.25, Exposure(50, 500, starts=False), 1, 1e-6) < base
    assert epsilon(0.5, Exposure(50, 250, starts=False), 1, 1e-6) < base
    assert epsilon(0.5, Exposure(50, 500, starts=False), 1, 1e-3) < base
    assert epsilon(0.5, Exposure(50, 500, starts=False, watched=False), 1, 1e-6) < base
    assert epsilon(0.5, Exposure(50, 500, starts=False), 3, 1e-6) > base
    assert epsilon(math.inf, Exposure(50, 500, starts=False), 1, 1e-6) == math.inf


@pytest.mark.parametrize("n", [1, 2])
def test_few_users_and_no_steps_are_answered(n: int) -> None:
    assert epsilon(0.5, Exposure(n, 0, starts=False), 1, 1e-6) == 0.0
    alone = epsilon(0.5, Exposure(n, 0, starts=True), 1, 1e-6)
    assert gaussian.epsilon_of(1e-6, 0.5) <= alone < math.inf
    assert epsilon(0.5, Exposure(n, 40, starts=True), 1, 1e-6) >= alone
