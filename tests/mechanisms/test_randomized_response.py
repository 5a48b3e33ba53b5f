from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.randomized_response import epsilon_of, estimate, gamma_of, standard_error


def test_known_answers() -> None:
    assert gamma_of(math.log(3), 2) == pytest.approx(0.5, rel=1e-14)
    assert gamma_of(1.0, 10) == pytest.approx(10 / (math.e + 9), rel=1e-14)
    assert epsilon_of(0.5, 2) == pytest.approx(math.log(3), rel=1e-14)
    assert epsilon_of(1.0, 7) == 0.0


@given(st.floats(1e-6, 700), st.integers(2, 10**6))
def test_gamma_gives_at_most_the_epsilon_asked_for(epsilon: float, categories: int) -> None:
    gamma = gamma_of(epsilon, categories)
    back = epsilon_of(gamma, categories)
    assert back <= epsilon
    assert back >= epsilon * (1 - 1e-12) - 1e-14 * categories  # near 1 a float gamma is no finer


@given(st.floats(1e-3, 30), st.floats(1.001, 3), st.integers(2, 1000))
def test_more_epsilon_means_fewer_uniform_answers(epsilon: float, factor: float, categories: int) -> None:
    assert gamma_of(epsilon * factor, categories) < gamma_of(epsilon, categories)


@given(st.floats(1e-3, 0.999), st.integers(2, 1000))
def test_epsilon_is_the_log_of_the_worst_ratio_of_chances(gamma: float, categories: int) -> None:
    other = gamma / categories
    assert epsilon_of(gamma, categories) == pytest.approx(math.log((1 - gamma + other) / other), rel=1e-12)


def test_the_expected_tally_gives_the_true_counts() -> None:
    """guide/accounting.md, section 2: tau_i = (1 - gamma) h_i + (gamma N + m) / L on average."""
    truth, gamma, dummies = np.array([600, 300, 100, 0]), 0.5, 40
    tally = ((1 - gamma) * truth + (gamma * 1000 + dummies) / 4).astype(np.int64)
    assert estimate(tally, 1000, gamma, dummies) == pytest.approx(truth)


def test_estimate_and_standard_error_match_simulated_answers() -> None:
    generator = np.random.default_rng(20240501)
    truth, gamma, dummies, runs = np.array([700, 250, 50]), 0.4, 60, 4000
    reports, categories = int(truth.sum()), len(truth)
    estimates = np.empty((runs, categories))
    for run in range(runs):
        tally = generator.multinomial(dummies, np.full(categories, 1 / categories))
        for category, held in enumerate(truth):
            uniform = generator.binomial(held, gamma)
            tally = tally + generator.multinomial(uniform, np.full(categories, 1 / categories))
            tally[category] += held - uniform
        estimates[run] = estimate(tally, reports, gamma, dummies)
    expected = standard_error(truth, reports, gamma, dummies)
    assert np.all(np.abs(estimates.mean(axis=0) - truth) < 5 * expected / math.sqrt(runs))
    assert estimates.std(axis=0) == pytest.approx(expected, rel=5 / math.sqrt(2 * runs))


def test_the_standard_error_by_hand() -> None:
    p1, p0 = 0.75, 0.25
    variance = 30 * p1 * (1 - p1) + 70 * p0 * (1 - p0) + 8 * 0.25
    assert standard_error([30.0, 70.0], 100, 0.5, 8)[0] == pytest.approx(math.sqrt(variance) / 0.5, rel=1e-14)


def test_estimates_beyond_the_possible_keep_a_standard_error() -> None:
    assert np.all(np.isfinite(standard_error([-40.0, 140.0], 100, 0.5)))
    assert standard_error([-40.0, 140.0], 100, 0.5) == pytest.approx(standard_error([0.0, 100.0], 100, 0.5))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 701.0, 1e-17])
def test_bad_epsilons_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        gamma_of(bad, 4)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, math.nan, math.inf])
def test_bad_gammas_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="gamma"):
        epsilon_of(bad, 4)
    with pytest.raises(UsageError, match="gamma"):
        estimate([1, 2], 3, bad)


def test_bad_tallies_are_refused() -> None:
    with pytest.raises(UsageError, match="gamma must be below 1"):
        estimate([1, 2], 3, 1.0)
    with pytest.raises(UsageError, match="each report and each dummy"):
        estimate([1, 2], 4, 0.5)
    with pytest.raises(UsageError, match="each report and each dummy"):
        estimate([-1, 4], 3, 0.5)
    for tally in ([3], [1.0, 2.0], [[1, 2]]):
        with pytest.raises(UsageError, match="A tally must be"):
            estimate(tally, 3, 0.5)
    for amounts in ((-1, 0), (3, -1)):
        with pytest.raises(UsageError, match="The number of"):
            estimate([1, 2], amounts[0], 0.5, amounts[1])
    with pytest.raises(UsageError, match="Estimates must be"):
        standard_error([math.nan, 1.0], 3, 0.5)
    with pytest.raises(UsageError, match="categories"):
        gamma_of(1.0, 1)
