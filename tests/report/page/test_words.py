from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.headline import Bound, reading_of
from p2pdp.core.words import PROTECTIONS
from p2pdp.mechanisms import gaussian
from p2pdp.report.page.words import factor, guess, in_words, number, observer, users, worst
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


def bound(epsilon: float | str, observer: str = "node", method: str | None = "exact") -> dict[str, Any]:
    reading = reading_of(math.inf if epsilon == "inf" else float(epsilon), 1e-5)
    return {"observer": observer, "method": method, "epsilon": epsilon, "delta": 1e-5, "reading": reading}


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 9.0, math.inf, "inf"])
def test_the_first_words_follow_from_epsilon(epsilon: float | str) -> None:
    headline = bound(epsilon)
    said = in_words(headline, bound("inf", "network"))
    assert said[0].startswith(PROTECTIONS[headline["reading"]].capitalize())
    assert "another user" in said[0]
    assert ("infinite" in said[0]) == (headline["reading"] == "none")
    if headline["reading"] != "strong":
        assert "Strong" not in " ".join(said)


def test_the_numbers_are_in_the_sentences() -> None:
    first, second, third = in_words(bound(math.log(3.0), "curator"), bound(7.5, "network"))
    assert "epsilon 1.099 at delta 1e-5" in first
    assert "the curator" in first
    assert "at most 3 times" in second
    assert "all decrypted messages" in third
    assert "Weak protection: epsilon 7.5" in third
    assert "e^44" in in_words(bound(44.0), bound(44.0))[1]


def test_the_worst_observer_is_named_even_where_its_bound_is_no_larger() -> None:
    assert "all decrypted messages" in in_words(bound(2.0), bound(2.0, "network"))[-1]
    assert "infinite" in in_words(bound(2.0), bound("inf", "network"))[-1]


def test_no_bound_is_not_called_infinite() -> None:
    said = in_words(bound("inf", method=None), bound("inf", "network", None))
    assert all(one.count("no bound is known") == 1 for one in said)
    assert "infinite" not in " ".join(said)
