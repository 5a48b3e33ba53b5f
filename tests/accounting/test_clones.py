from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.accounting.clones import clones
from p2pdp.accounting.krr import krr_upper, local_epsilon
from p2pdp.core.errors import UsageError


@pytest.mark.parametrize(
    ("asked", "bracket"),
    [((4.0, 100_000, 1e-6), (0.167458, 0.172434)), ((1.0, 1000, 1e-6), (0.182408, 0.190245))],
)
def test_they_lie_within_the_brackets_of_the_authors_code(
    asked: tuple[float, int, float], bracket: tuple[float, float]
) -> None:
    lower, upper = clones(*asked)
    assert bracket[0] <= lower <= upper <= bracket[1]
    assert upper - lower <= 2e-8 * upper


@pytest.mark.parametrize(("kappa", "known"), [(1.0, 0.034), (0.82, 0.038)])
def test_known_answers_of_network_shuffling(kappa: float, known: float) -> None:
    assert clones(1.0, 22470, 1e-6, kappa)[1] == pytest.approx(known, abs=5e-4)


def by_hand(epsilon: float, epsilon_0: float, n: int) -> float:
    """The hockey-stick divergence of the pair as Theorem 3.1 states it, (A + D, C - A + 1 - D)."""
    chance, told = math.exp(-epsilon_0), 1.0 / (1.0 + math.exp(-epsilon_0))
    total = 0.0
    for c in range(n):
        weight = math.comb(n - 1, c) * chance**c * (1.0 - chance) ** (n - 1 - c)
        for first in range(c + 2):
            up, down = (math.comb(c, first - one) / 2.0**c if 0 <= first - one <= c else 0.0 for one in (1, 0))
            p, q = told * up + (1.0 - told) * down, (1.0 - told) * up + told * down
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon_0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-7])
def test_they_are_the_theorems_pair(n: int, epsilon_0: float, delta: float) -> None:
    lower, upper = clones(epsilon_0, n, delta)
    assert by_hand(upper, epsilon_0, n) <= delta * (1.0 + 1e-9)
    if lower > 0.0:
        assert by_hand(lower, epsilon_0, n) >= delta * (1.0 - 1e-9)
    else:
        assert upper == 0.0


@given(
    epsilon_0=st.floats(math.log(1e-6), math.log(50.0)).map(math.exp),
    n=st.floats(0.0, math.log(1e6)).map(lambda log: round(math.exp(log))),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    kappa=st.floats(0.0, 1.0),
)
@settings(max_examples=30, deadline=None)
def test_they_are_sound_and_monotone(epsilon_0: float, n: int, delta: float, kappa: float) -> None:
    lower, upper = clones(epsilon_0, n, delta, kappa)
    assert 0.0 <= lower <= upper <= epsilon_0
    assert upper - lower <= 1e-6 * upper + 1e-13
    room = 1.0 + 1e-6
    assert clones(epsilon_0, 2 * n, delta, kappa)[1] <= upper * room + 1e-15
    assert clones(epsilon_0, n, 2.0 * delta, kappa)[1] <= upper * room + 1e-15
    assert upper <= clones(epsilon_0, n, delta, kappa / 2.0)[1] * room + 1e-15
    assert upper <= clones(1.2 * epsilon_0, n, delta, kappa)[1] * room + 1e-15


def test_who_is_alone_is_not_hidden() -> None:
    assert clones(1.0, 1, 0.1)[1] == pytest.approx(local_epsilon(1.0, 2, 0.1))
    assert clones(1.0, 1000, 0.1, 0.0)[1] == pytest.approx(local_epsilon(1.0, 2, 0.1))


def test_two_categories_have_a_larger_blanket_than_clones() -> None:
    """A uniform answer has the chance 2/(e^epsilon_0 + 1), a clone only e^-epsilon_0."""
    for n in (10, 1000, 100_000):
        assert krr_upper(1.0, 2, n, 1e-6) < clones(1.0, n, 1e-6)[0]


@pytest.mark.parametrize("wrong", [(0.0, 5, 0.1), (1.0, 0, 0.1), (1.0, 5, 0.0), (1.0, 5, 1.0), (1.0, 5, 0.1, 1.1)])
def test_impossible_questions_are_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        clones(*wrong)  # type: ignore[arg-type]
