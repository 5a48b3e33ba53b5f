from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.privacy.shuffle.excess import Tilted, binomial_masses, excess_of_four, excess_of_three


def listed(n: int, chances: list[float], values: list[float]) -> float:
    """E[(sum)+] over all numbers of each value."""
    law = {(0,) * len(values): 1.0}
    for _ in range(n):
        following: dict[tuple[int, ...], float] = {}
        for counts, mass in law.items():
            for one, chance in enumerate(chances):
                key = (*counts[:one], counts[one] + 1, *counts[one + 1 :])
                following[key] = following.get(key, 0.0) + mass * chance
        law = following
    sums = {key: math.fsum(count * value for count, value in zip(key, values, strict=True)) for key in law}
    return math.fsum(mass * max(0.0, sums[key]) for key, mass in law.items())


@given(
    n=st.integers(2, 12),
    share=st.floats(1e-6, 0.49),
    centre=st.floats(-2.0, 0.0),
    first=st.floats(0.0, 5.0),
    second=st.floats(-20.0, -0.5),
)
@settings(max_examples=60)
def test_three_values_are_summed_exactly(n: int, share: float, centre: float, first: float, second: float) -> None:
    second = min(second, 2.0 * centre - first)
    lower, upper = excess_of_three(n, share, centre, first, second, 1e-25)
    exact = listed(n, [1.0 - 2.0 * share, share, share], [centre, first, second])
    assert lower <= exact * (1.0 + 1e-9)
    assert exact <= upper * (1.0 + 1e-9)
    assert upper - lower <= 1e-9 * n * (abs(centre) + abs(first) + abs(second)) * max(share, 1e-12)


@pytest.mark.parametrize("blanket", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
def test_four_values_are_summed_from_above(blanket: float, epsilon: float) -> None:
    n, categories, gain, gamma = 10, 5, 1.0, 0.4
    tilt = gamma * math.expm1(epsilon)
    values = (0.0, gain - tilt, -gain * math.exp(epsilon) - tilt, -tilt)
    share = blanket / categories
    exact = listed(n, [1.0 - blanket, share, share, blanket - 2.0 * share], list(values))
    before = math.inf
    for size in (1 << 8, 1 << 12, 1 << 16):
        found = excess_of_four(n, share, values, blanket, size)
        assert exact <= found <= before * (1.0 + 1e-9)
        before = found
    assert before <= exact * (1.0 + 1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(50_000, 0.004), (1_000_000, 0.003), (1_000_000, 0.0005)])
def test_the_two_ways_agree_on_large_sums(n: int, epsilon: float) -> None:
    """With two categories nothing is left over, and four values are three."""
    gamma = 0.5
    tilt, gain = gamma * math.expm1(epsilon), 1.0
    first, second = gain - tilt, -gain * math.exp(epsilon) - tilt
    exact = excess_of_three(n, 0.25, 0.0, first, second, 1e-20)
    grid = excess_of_four(n, 0.25, (0.0, first, second, -tilt), 0.5, 1 << 17)
    assert exact[0] == pytest.approx(exact[1], rel=1e-6)
    assert exact[0] <= grid <= exact[1] * 1.005


def test_nothing_is_gained_where_no_value_is_above() -> None:
    assert excess_of_three(5, 0.2, 0.0, 0.0, -1.0, 1e-20) == (0.0, 0.0)
    assert excess_of_four(5, 0.2, (0.0, -0.1, -1.0, -0.1), 0.9, 256) == 0.0


def test_a_grid_too_large_is_not_made() -> None:
    """All that is positive is then counted in full."""
    found = excess_of_four(1_000_000, 0.2, (0.0, 1e-9, -1.0, -0.1), 0.9, 256)
    assert found == pytest.approx(1_000_000 * 0.2 * 1e-9)


@given(trials=st.integers(0, 60), chance=st.floats(1e-9, 1.0 - 1e-9))
@settings(max_examples=60)
def test_binomial_masses(trials: int, chance: float) -> None:
    counts = np.arange(trials + 3)
    found = binomial_masses(np.full(trials + 3, trials), chance, counts)
    for count, mass in zip(counts.tolist(), found.tolist(), strict=True):
        exact = (
            math.comb(trials, count) * chance**count * (1.0 - chance) ** (trials - count) if count <= trials else 0.0
        )
        assert mass == pytest.approx(exact, rel=1e-11, abs=1e-290)


def test_binomial_masses_of_many_trials_add_up() -> None:
    n = 10**7
    counts = np.arange(4_980_000, 5_020_000)
    assert float(binomial_masses(np.full(len(counts), n), 0.5, counts).sum()) == pytest.approx(1.0, abs=1e-11)


def test_tilting_centres() -> None:
    law = Tilted(np.array([0.0, 2.0, -3.0]), np.array([0.5, 0.2, 0.3]))
    assert law.exponent > 0.0
    assert float(law.tilted @ law.values) == pytest.approx(0.0, abs=1e-5)
    assert math.exp(law.log_moment) == pytest.approx(
        0.5 + 0.2 * math.exp(2 * law.exponent) + 0.3 * math.exp(-3 * law.exponent)
    )
    assert Tilted(np.array([0.0, 2.0]), np.array([0.5, 0.5])).exponent == 0.0
