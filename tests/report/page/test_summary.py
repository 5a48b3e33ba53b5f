from __future__ import annotations

import math

import numpy as np

from p2pdp.report.page.summary import summary
from tests.support.made import claim, facts, matrix, outcome, read


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


THREE = [claim(), claim(observer="curator", epsilon_max=1.0), claim(observer="public", epsilon_max=0.5)]


def test_the_verdict_comes_first_and_the_worst_observer_beside_it() -> None:
    words = said(claims=[*THREE, claim(observer="network", epsilon_max=math.inf, mu_max=math.inf)])
    assert words.startswith("Moderate protection from other users, the curator and the public: epsilon 1.5 at delta")
    assert words.index("No protection: epsilon infinite") < words.index("A token went")
    assert "another user ◐ moderate 1.5 59.9 of 100 exact public" in words
    assert "the public ● strong 0.5 59.9 of 100 exact public" in words
    assert "an observer of all decrypted messages ✕ none infinite 100 of 100 exact public" in words
    assert "colluding" not in words


def test_no_reassuring_word_stands_on_a_page_with_a_weak_number() -> None:
    page = read(summary(facts(claims=[claim(observer="network", method="local", epsilon_max=67.8)])))
    assert page.said.startswith("Weak protection")
    for word in ("strong", "moderate", "cannot", "not the numbers"):
        assert word not in page.said.partition("How to read")[0].lower()
    assert [name for name, _ in page.having(class_="verdict weak")] == ["p", "p"]


def test_a_guess_is_by_the_claim_that_says_most() -> None:
    two = [claim(method="local", mu_max=None), claim(epsilon_max=1.6, mu_max=0.5)]
    assert "another user ◐ moderate 1.5 59.9 of 100" in said(claims=two), "Phi(0.25) = 0.5987, rounded up"
    assert "another user ◐ moderate 1.5 81.8 of 100" in said(claims=two[:1]), "e^1.5 / (1 + e^1.5)"
    given_view = [claim(method="hidden-path", conditioning="view", mu_max=None), claim(epsilon_max=1.6)]
    assert "another user ◐ moderate 1.5 81.8 of 100" in said(claims=given_view), "of one conditioning only"


def test_epsilon_is_explained_with_the_headlines_own_number() -> None:
    words = said(claims=THREE)
    assert "plus δ = 1e-5" in words
    assert "For ε = 1.5 the factor e^ε is 4.48" in words
    assert "50 times of 100" in words
    for epsilon in (50.0, math.inf):
        assert "the factor" not in said(claims=[claim(epsilon_max=epsilon)]).partition("How to read")[2]


def test_guesses_are_those_of_the_pairs_own_leak_where_that_is_known() -> None:
    assert "right at most 60 times of 100" in said(), "Phi(2.01 / 8) = 0.5992, rounded up"
    assert "right at most 88.2 times of 100" in said(mu=None), "e^2.01 / (1 + e^2.01)"


def test_the_total_variation_of_a_hidden_path_counts_where_it_is_about_the_same_terms() -> None:
    hidden = claim(method="hidden-path", conditioning="view", mu_max=None)
    given_view = {"claims": [hidden], "conditioning": "view", "mu": None, "variation": matrix() / 10}
    words = said(**given_view)
    assert "another user ◐ moderate 1.5 60.1 of 100 hidden-path view" in words, "(1 + 0.201) / 2, rounded up"
    assert "2.01 the data of user 2, seen by user 1 the best guess between two values is right at most 60.1" in words
    other = said(**given_view | {"conditioning": "public"})
    assert "another user ◐ moderate 1.5 81.8 of 100 hidden-path view" in other


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


def test_without_pairs_the_bounds_are_told() -> None:
    local = claim(observer="network", method="local", mu_max=None, worst_pair=(1, "network"), epsilon_max=3.0)
    words = said(epsilon=None, claims=[claim(bound=False, epsilon_max=0.1), local])
    for name in ("another user", "the curator", "the public", "an observer of all decrypted messages"):
        assert f"{name} ◐ moderate 3 95.3 of 100 local public" in words
    assert " 0.1 " not in words


def test_without_any_bound_that_is_what_is_said() -> None:
    for given in (None, np.full((3, 3), math.nan)):
        words = said(epsilon=given, claims=[claim(bound=False)])
        assert "no bound is known" in words
        assert "another user ✕ none unknown unknown" in words


def test_colluders_are_told() -> None:
    together = claim(observer="coalition", worst_pair=(0, (1, 2)), epsilon_max=4.0, mu_max=None)
    assert "colluding users: 1, 2 ◐ moderate 4 98.3 of 100" in said(claims=[claim(), together])


def test_an_unknown_protocol_needs_no_words() -> None:
    words = said(protocol="walk.new")
    assert "A token" not in words
    assert "How much one user" in words
