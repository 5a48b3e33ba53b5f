from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.audit.headline import Bound
from p2pdp.mechanisms import gaussian
from p2pdp.report.page.words import factor, guess, number, observer, users, worst
from tests.support.made import claim


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (math.inf, "infinite"),
        (1.23456, "1.235"),
        (0.0, "0"),
        (1e-6, "1e-6"),
        (1e17, "1e17"),
        (12, "12"),
        ([1.0, 2.5], "1, 2.5"),
        ([0.0] * 9, "0, 0, 0, 0, 0, 0, … (9 numbers)"),
    ],
)
def test_numbers_are_short(value: object, shown: str) -> None:
    assert number(value) == shown


def test_a_guess_without_any_leak_is_right_half_of_the_time() -> None:
    assert guess(0.0, 0.0) == guess(0.0, 0.0, 0.0) == "50"
    assert guess(math.inf, 1e-6) == guess(3.0, 1e-6, math.inf) == "100"
    assert guess(0.0, 0.01) == "50.5"


def test_a_guess_knows_the_normal_distribution() -> None:
    """Phi(1/2) = 0.691462, and e / (e + 1) = 0.731059, both rounded up."""
    assert guess(4.0, 1e-5, 1.0) == "69.2"
    assert guess(1.0, 0.0) == "73.2"


def test_a_known_total_variation_says_more_and_never_less() -> None:
    assert guess(1.0, 0.0, variation=0.2) == "60"
    assert guess(1.0, 0.0, variation=0.9) == guess(1.0, 0.0)
    assert guess(4.0, 1e-5, 1.0, 0.0) == "69.2", "mu is exact"
    assert guess(math.inf, 1e-5, variation=0.2) == "100"


@given(st.floats(1e-6, 30.0), st.floats(1e-12, 0.5))
def test_a_guess_from_the_leak_itself_never_exceeds_that_from_its_epsilon(mu: float, delta: float) -> None:
    """(e^epsilon + delta) / (e^epsilon + 1) bounds what any test of an (epsilon, delta) pair attains."""
    assert float(guess(1.0, delta, mu)) <= float(guess(gaussian.epsilon_of(delta, mu), delta)) + 1e-9


@given(st.floats(0.0, 1e9), st.floats(0.0, 1.0))
def test_a_guess_is_a_percentage(epsilon: float, delta: float) -> None:
    assert 50.0 <= float(guess(epsilon, delta)) <= 100.0


def test_factors_are_written_out_while_they_say_something() -> None:
    assert factor(1.0) == "2.72"
    assert factor(10.1) == "24,300"
    assert factor(210.06) == factor(math.inf) == ""


def test_who_looks_and_whose_data_is_at_stake() -> None:
    assert observer(claim()) == "another user"
    assert worst(claim(worst_pair=(3, 7))) == "user 3, seen by user 7"
    assert worst(claim(worst_pair=(3, "curator"))) == "user 3"
    assert worst(claim(worst_pair=None)) == ""
    assert observer(claim(observer="coalition", worst_pair=(0, (4, 5)))) == "colluding users: 4, 5"
    assert observer(claim(observer="coalition", worst_pair=None)) == "colluding users"
    assert observer(claim(observer="a stranger")) == "a stranger"
    together = claim(observer="coalition", worst_pair=(0, (4, 5)))
    assert observer(Bound("coalition", 1e-5, (together,))) == "colluding users: 4, 5"
    assert observer(Bound("coalition", 1e-5, ())) == "colluding users"
    assert users(list(range(9))) == "0, 1, 2, 3, 4, 5, … (9 in all)"
