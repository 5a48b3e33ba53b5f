from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import count_above, epsilon_of_each, epsilons_of, gaussian_deltas

DELTAS = [0.5, 0.1, 1e-3, 1e-5, 1e-6, 1e-12, 1e-30, 1e-100]


def assert_as_careful(delta: float, mus: list[float]) -> None:
    """Never below the truth, of which the careful way is at most a part in 10^9 above."""
    found = epsilons_of(delta, np.array(mus))
    for mu, epsilon in zip(mus, found.tolist(), strict=True):
        careful = gaussian.epsilon_of(delta, mu)
        if math.isinf(careful) or careful == 0.0:
            assert epsilon == careful
        else:
            assert gaussian.delta_of(epsilon, mu) <= delta * (1 + 1e-11), (mu, epsilon)
            assert epsilon >= careful, (mu, epsilon, careful)
            assert epsilon <= careful * (1 + 2e-9), (mu, epsilon, careful)


@pytest.mark.parametrize("delta", DELTAS)
def test_it_agrees_with_the_careful_curve(delta: float) -> None:
    assert_as_careful(delta, np.logspace(-8, 3, 221).tolist())


@given(st.floats(-8.0, 3.0), st.floats(-100.0, math.log10(0.5)))
def test_it_agrees_anywhere(log_mu: float, log_delta: float) -> None:
    assert_as_careful(10.0**log_delta, [10.0**log_mu])


@pytest.mark.parametrize("delta", DELTAS)
def test_it_agrees_where_epsilon_sets_in(delta: float) -> None:
    """Epsilon is 0 up to a mu and rises steeply after it: the largest relative errors are there."""
    edge = gaussian.mu_of_curve(0.0, delta)
    assert_as_careful(delta, [edge * factor for factor in (0.9, 1 - 1e-6, 1 + 1e-6, 1 + 1e-4, 1.01, 1.1)])


def test_known_answers() -> None:
    found = epsilons_of(1e-5, np.array([1.0, 1 / 3.7306316348159]))
    np.testing.assert_allclose(found, [4.37717809568122, 1.0], rtol=3e-9)


def test_next_to_no_noise_is_told_without_warnings() -> None:
    assert_as_careful(1e-6, [1.1e6, 1e9, 1e30, 1e100, 1e150, 1e154, 1e160, 1.7e308])


def test_nothing_infinity_and_what_is_not_there() -> None:
    found = epsilons_of(1e-5, np.array([[0.0, math.inf], [math.nan, 1.0]]))
    assert found[0, 0] == 0.0
    assert math.isinf(found[0, 1])
    assert math.isnan(found[1, 0])
    assert found[1, 1] > 4.377
    assert epsilons_of(1e-5, np.zeros((0, 3))).shape == (0, 3)
    np.testing.assert_array_equal(epsilons_of(1e-5, np.array([math.nan, math.inf])), [math.nan, math.inf])


def test_a_larger_leak_never_has_a_smaller_epsilon() -> None:
    mus = np.sort(np.concatenate([np.logspace(-8, 3, 500), np.linspace(0.9e-5, 1.1e-5, 100)]))
    for delta in DELTAS:
        assert np.all(np.diff(epsilons_of(delta, mus)) >= -1e-9 * epsilons_of(delta, mus)[1:])


def test_each_of_few_is_what_a_claim_says() -> None:
    mu = np.array([0.0, 0.3, math.nan, 7.0, math.inf])
    found = epsilon_of_each(1e-5, mu)
    expected = [gaussian.epsilon_of(1e-5, one) for one in (0.0, 0.3, 7.0, math.inf)]
    assert found[[0, 1, 3, 4]].tolist() == expected
    assert math.isnan(found[2])
    assert (found[[1, 3]] <= epsilons_of(1e-5, mu)[[1, 3]]).all()


def test_gaussian_deltas_are_exact_into_the_tail() -> None:
    for mu in (1e-4, 0.03, 0.5, 3.0, 30.0):
        epsilons = mu * np.array([0.0, 0.1, 1.0, 5.0, 20.0]) + mu**2 / 2
        for epsilon, found in zip(epsilons, gaussian_deltas(epsilons, np.full(5, mu)), strict=True):
            assert found == pytest.approx(gaussian.delta_of(float(epsilon), mu), rel=1e-9, abs=1e-300)


@given(
    st.lists(st.floats(0.0, 1e7) | st.just(math.inf), max_size=30),
    st.floats(0.0, 60.0) | st.just(math.inf),
    st.sampled_from([1e-12, 1e-5, 0.3]),
)
def test_those_above_are_counted_as_each_of_them_says(mus: list[float], epsilon: float, delta: float) -> None:
    mu = np.array(mus)
    epsilons = epsilons_of(delta, mu)
    for at in (epsilon, *epsilons.tolist()):  # also right at one of them, but for the last digits
        most, least = (int(np.sum(epsilons > at * (1.0 + sign * 1e-12))) for sign in (-1.0, 1.0))
        assert least <= count_above(delta, mu, at) <= most
