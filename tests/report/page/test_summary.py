from __future__ import annotations

import math

import numpy as np

from p2pdp.report.page.summary import summary
from tests.report.page.made import claim, facts, matrix, outcome, read


def said(**changes: object) -> str:
    return read(summary(facts(**changes))).said


def test_worst_typical_and_best_pair_are_named() -> None:
    words = said()
    assert "worst pair ε = 2.01 the data of user 2, seen by user 1" in words
    assert "typical pair ε = 1.02" in words
    assert "best pair ε = 0.01 the data of user 0, seen by user 1" in words
    assert "given the whole route" in words
    assert "A simulation" not in words
    assert "Not protected" not in words


def test_epsilon_is_explained_with_the_headlines_own_number() -> None:
    words = said()
    assert "plus δ = 1e-5" in words
    assert "For ε = 1.5 the factor e^ε is 4.48" in words
    assert "50 times of 100" in words
    for epsilon in (50.0, math.inf):
        assert "the factor" not in said(claims=[claim(epsilon_max=epsilon)])


def test_guesses_are_those_of_the_pairs_own_leak_where_that_is_known() -> None:
    assert "right at most 60 times of 100" in said(), "Phi(2.01 / 8) = 0.5992, rounded up"
    assert "right at most 88.2 times of 100" in said(mu=None), "e^2.01 / (1 + e^2.01)"


def test_infinite_pairs_are_counted_and_come_first() -> None:
    epsilon = matrix()
    epsilon[1, 0] = math.inf
    words = said(epsilon=epsilon)
    assert "Not protected: for 1 of 6 pairs" in words
    assert "ε = ∞" in words
    assert words.index("Not protected") < words.index("worst pair")


def test_a_simulation_and_missing_records_are_told() -> None:
    hypothetical = claim(assumptions=("hypothetical: noise and routing came from a seed",))
    assert "came from seed 7" in said(claims=[hypothetical], outcome=outcome(seed=7))
    assert "came from seed," in said(claims=[hypothetical], outcome=None)
    assert "Not everybody's records are here" in said(verified="incomplete", outcome=outcome(missing=[2]))
    assert "Out: user 2." in said(verified="incomplete", outcome=outcome(missing=[2]))


def test_without_pairs_the_first_bound_is_told() -> None:
    local = claim(observer="network", method="local", mu_max=None, worst_pair=(1, "network"), epsilon_max=3.0)
    words = said(epsilon=None, claims=[claim(bound=False, epsilon_max=0.1), local])
    assert "holds against one who sees all , whatever that observer saw:" in words
    assert "worst case ε = 3 user 1" in words
    assert "on average over users ε = 0.75" in words
    assert "ε = 0.1" not in words


def test_without_any_bound_that_is_what_is_said() -> None:
    assert "No bound." in said(epsilon=None, claims=[claim(bound=False)])
    assert "No bound." in said(epsilon=np.full((3, 3), math.nan), claims=[])


def test_colluders_are_told() -> None:
    together = claim(observer="coalition", worst_pair=(0, (1, 2)), epsilon_max=4.0)
    assert "Colluding users: 1, 2 could" in said(claims=[claim(), together])
    endless = claim(observer="coalition", worst_pair=(0, (1, 2)), epsilon_max=math.inf)
    assert "Not protected from colluders." in said(claims=[claim(), endless])


def test_an_unknown_protocol_needs_no_words() -> None:
    words = said(protocol="walk.new")
    assert words.startswith("How much one user")
