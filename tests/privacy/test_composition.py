from __future__ import annotations

import math
from itertools import product

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import Refused
from p2pdp.privacy.composition import (
    advanced,
    drawn_with_replacement,
    growth,
    heterogeneous,
    homogeneous,
    optimal,
    sampled_epsilon,
    total_delta,
)

EPSILONS = st.floats(math.log(1e-6), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-12), math.log(0.9)).map(math.exp)


def test_known_answers() -> None:
    assert advanced(0.1, 100, 1e-7) == pytest.approx(6.729401608311588, rel=1e-14)
    assert homogeneous(0.1, 100, 1e-7) == pytest.approx(6.177276177133911, rel=1e-14)
    assert heterogeneous([0.1] * 100, 1e-7) == pytest.approx(6.177276177133911, rel=1e-13)


def test_the_third_form_is_taken_where_it_is_the_least() -> None:
    """ln(e + sqrt(sum of squares)/delta') is below ln(1/delta') only where the squares are small."""
    epsilon, k, delta_prime = 1e-4, 1_000_000, 1e-3
    squares = k * epsilon**2
    third = math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta_prime))
    second = math.sqrt(2 * squares * math.log(1 / delta_prime))
    drift = k * epsilon * math.tanh(epsilon / 2)
    assert third < second
    assert homogeneous(epsilon, k, delta_prime) == pytest.approx(drift + third, rel=1e-12)


@given(epsilon=EPSILONS, k=st.integers(1, 3000), delta_prime=DELTAS)
def test_every_theorem_is_above_what_is_optimal_and_below_what_it_improves(
    epsilon: float, k: int, delta_prime: float
) -> None:
    """[DRV10] and [KOV15, Theorem 3.5] are bounds, and the second is never worse."""
    least = optimal(epsilon, k, delta_prime)
    best = homogeneous(epsilon, k, delta_prime)
    assert 0.0 <= least <= best * (1 + 1e-6) + 1e-6
    assert best <= min(k * epsilon, advanced(epsilon, k, delta_prime)) * (1 + 1e-12)


def enumerated_delta(epsilon: float, k: int, at: float) -> float:
    """Of k times binary randomized response, all answers listed."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    total = 0.0
    for answers in product((0, 1), repeat=k):
        p = math.prod(truth if answer else 1 - truth for answer in answers)
        q = math.prod(1 - truth if answer else truth for answer in answers)
        total += max(0.0, p - math.exp(at) * q)
    return total


@given(
    epsilons=st.lists(st.floats(math.log(1e-3), math.log(2.0)).map(math.exp), min_size=1, max_size=7),
    delta_prime=st.floats(math.log(1e-6), math.log(0.5)).map(math.exp),
)
def test_different_epsilons_compose_as_said(epsilons: list[float], delta_prime: float) -> None:
    """[KOV15, Theorem 3.5] on the worst of pure mechanisms, binary randomized responses, with all answers listed."""
    at, total = heterogeneous(epsilons, delta_prime), 0.0
    for answers in product((1.0, -1.0), repeat=len(epsilons)):
        loss = math.fsum(answer * epsilon for answer, epsilon in zip(answers, epsilons, strict=True))
        chance = math.prod(1.0 / (1.0 + math.exp(-a * e)) for a, e in zip(answers, epsilons, strict=True))
        total += chance * max(0.0, -math.expm1(at - loss))
    assert total <= delta_prime * (1 + 1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("delta_prime", [1e-6, 1e-2, 0.3])
def test_the_optimal_epsilon_is_that_of_randomized_response(epsilon: float, k: int, delta_prime: float) -> None:
    """[KOV15, Theorem 3.3] by all answers of randomized response."""
    found = optimal(epsilon, k, delta_prime)
    assert enumerated_delta(epsilon, k, found) <= delta_prime * (1 + 1e-9)
    if found > 0.0:
        assert enumerated_delta(epsilon, k, found - 1e-6) > delta_prime * (1 - 1e-7)


def test_the_optimal_epsilon_agrees_with_a_public_oracle() -> None:
    one = pld.from_randomized_response(2 / (1 + math.exp(0.1)), 2, value_discretization_interval=1e-4)
    oracle = one.self_compose(100).get_epsilon_for_delta(1e-7)
    assert optimal(0.1, 100, 1e-7) == pytest.approx(oracle, rel=2e-3)


def test_a_million_mechanisms_are_answered() -> None:
    found = optimal(0.1, 1_000_000, 1e-6)
    assert advanced(0.1, 1_000_000, 1e-6) > homogeneous(0.1, 1_000_000, 1e-6) > found > 5000.0
    assert optimal(700.0, 3, 1e-6) == pytest.approx(2100.0)
    assert optimal(1e-12, 10, 0.1) == 0.0


def test_deltas_add_up_and_say_nothing_from_1_on() -> None:
    assert total_delta(0.1, 0.2) == pytest.approx(0.3)
    with pytest.raises(Refused, match=r"add up to 1\.2"):
        total_delta(0.7, 0.5)


def test_growth_is_infinite_where_no_float_holds_it() -> None:
    assert growth(1.0) == math.expm1(1.0)
    assert growth(1e9) == math.inf


@given(epsilon=st.floats(0.0, 700.0), share=st.floats(0.0, 1.0))
def test_a_sample_tells_less(epsilon: float, share: float) -> None:
    found = sampled_epsilon(epsilon, share)
    assert 0.0 <= found <= epsilon * (1 + 1e-12) + 1e-12
    if epsilon < 600.0:
        assert found >= math.log1p(share * math.expm1(epsilon)) * (1 - 1e-12)
    assert sampled_epsilon(epsilon, 1.0) == pytest.approx(epsilon, rel=1e-12)


def test_many_draws_of_many_users_keep_their_digits() -> None:
    assert drawn_with_replacement(10**9, 1) == pytest.approx(1e-9, rel=1e-12)
    assert drawn_with_replacement(1, 0) == 0.0
    assert drawn_with_replacement(5, 4) == pytest.approx(1 - 0.8**4)
