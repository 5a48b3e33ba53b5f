"""Against all walks of a few steps, one by one, and against the closed form of guide/accounting.md."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.walk import (
    Exposure,
    epsilon,
    log_moment,
    mean_inverse_gap,
    published_divergence,
    published_excess,
    walk_divergence,
)

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


RATIOS = st.floats(math.log(1e-3), math.log(1e2)).map(math.exp)
EXCESSES = st.floats(math.log(1e-6), math.log(1e6)).map(math.exp)
USERS = st.integers(2, 10**6)


def divergence(excess: float, ratio: float, n: int, visits: int) -> float:
    return float(walk_divergence(np.array([excess]), ratio, n, visits)[0])


def test_known_answers() -> None:
    assert mean_inverse_gap(100) == pytest.approx(0.0798372, rel=1e-6)
    assert mean_inverse_gap(200) == pytest.approx(0.0465168705656, rel=1e-11), "geometric with p = 1/100"
    assert mean_inverse_gap(2) == 1.0


def moment(n: int, steps: int, visits_most: int, exponent: float) -> float:
    """E[product of e^(x / gap) over visits of u, if there are few enough] over all walks, listed.

    A gap lasts from a visit of u to the next one of u or v, or to the end, when the final model is seen.
    """
    chance = {"u": 1.0 / n, "v": 1.0 / n, "w": 1.0 - 2.0 / n}
    total = 0.0
    for walk in product("uvw", repeat=steps):
        if walk.count("u") > visits_most:
            continue
        cost, seen = 0.0, steps
        for place in range(steps - 1, -1, -1):
            if walk[place] == "u":
                cost += 1.0 / (seen - place)
            if walk[place] != "w":
                seen = place
        total += math.prod(chance[user] for user in walk) * math.exp(exponent * cost)
    return total


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize(("steps", "visits_most"), [(1, 1), (5, 2), (8, 3), (8, 8)])
@pytest.mark.parametrize("exponent", [0.01, 0.5, 3.0])
def test_no_walk_has_a_larger_moment_than_independent_gaps(
    n: int, steps: int, visits_most: int, exponent: float
) -> None:
    """[ABR23, Algorithm 4] on all walks, with each gap as [FMTT18, Theorem 22] bounds it.

    The token seen also at each visit of u: the proof's own view, ends of the walk included.
    """
    excess, ratio = 1.0, math.sqrt(exponent / 4.0)
    bound = math.exp(divergence(excess, ratio, n, visits_most) * excess)
    assert moment(n, steps, visits_most, exponent) <= bound * (1.0 + 1e-12)


def test_the_moment_is_that_of_a_geometric_gap() -> None:
    for n in (3, 100, 5000):
        gaps = np.arange(1.0, 200_000.0)
        chances = 2.0 / n * (1.0 - 2.0 / n) ** (gaps - 1.0)
        for exponent in (1e-6, 0.1, 2.0, 30.0):
            wanted = math.log1p(math.fsum(chances * np.expm1(exponent / gaps)))
            found = divergence(1.0, math.sqrt(exponent / 4.0), n, 1)
            assert wanted * (1 - 1e-9) <= found <= wanted * (1 + 1e-6) + 1e-12


@given(excess=EXCESSES, ratio=RATIOS, n=USERS)
def test_it_is_between_the_mean_and_the_closed_form_and_never_above_local(excess: float, ratio: float, n: int) -> None:
    alpha, squared = 1.0 + excess, ratio**2
    found = divergence(excess, ratio, n, 3)
    assert found <= 3 * 2 * alpha * squared * (1 + 1e-12)
    assert found >= 3 * 2 * alpha * squared * mean_inverse_gap(n) * (1 - 1e-9), "Jensen's inequality"
    if 2 * squared * alpha * excess <= 1.0 and n > 2:
        closed = 8 * 3 * alpha * squared * math.log(n / 2) / (n - 2)
        assert found <= closed * (1 + 1e-9)


@given(excess=EXCESSES, ratio=RATIOS, n=USERS, visits=st.integers(0, 1000))
def test_more_users_hide_more_and_more_visits_tell_more(excess: float, ratio: float, n: int, visits: int) -> None:
    found = divergence(excess, ratio, n, visits)
    assert divergence(excess, ratio, n + 1 + n // 10, visits) <= found * (1 + 1e-9)
    assert divergence(excess, ratio, n, visits + 1) >= found
    assert divergence(excess, ratio * 1.5, n, visits) >= found
    assert divergence(excess * 1.5, ratio, n, visits) >= found * (1 - 1e-9), "a divergence grows with its order"
    assert math.isfinite(found)


def test_the_published_account_misses_a_repeated_visit() -> None:
    """Visits u, u, v with constant gradients: 2 Delta^2 / sigma^2 where its terms add up to 1.5 of them."""
    assert published_divergence(2.0, 1.0, 100, 5) == pytest.approx(40.0 * math.log(100) / 99)
    assert mean_inverse_gap(100) > 2 * 0.0465168705656 * 0.8


@given(ratio=RATIOS)
def test_the_published_order_is_the_largest_that_its_condition_admits(ratio: float) -> None:
    alpha = 1.0 + published_excess(ratio)
    assert 2 * ratio**2 * alpha * published_excess(ratio) == pytest.approx(1.0, rel=1e-9)
