from __future__ import annotations

import math

import numpy as np

from p2pdp.report.page.summary import summary
from tests.support.made import claim, facts, matrix, outcome, read


def said(**changes: object) -> str:
    return read(summary(facts(**changes))).said


def rows(**changes: object) -> list[list[str]]:
    """The verdict's table: observer, sign and strength, worst epsilon, guesses of 100, method, conditioning."""
    return [[*row[:3], row[3].partition(" ")[0], *row[4:]] for row in read(summary(facts(**changes))).rows[1:]]


def notes(**changes: object) -> int:
    return len(read(summary(facts(**changes))).notes)


def test_worst_typical_and_best_pair_are_named() -> None:
    words = said()
    assert (
        words.index("2.01 the data of user 2, seen by user 1") < words.index("1.02") < words.index("0.01 the data of")
    )
    assert "given the whole route" in words
    assert notes() == 0


THREE = [claim(), claim(observer="curator", epsilon_max=1.0), claim(observer="public", epsilon_max=0.5)]


def test_the_verdict_comes_first_and_the_worst_observer_beside_it() -> None:
    claims = [*THREE, claim(observer="network", epsilon_max=math.inf, mu_max=math.inf)]
    page = read(summary(facts(claims=claims)))
    assert [given.get("class") for name, given in page.elements if name == "p"][:2] == [
        "verdict moderate",
        "verdict none",
    ]
    assert page.said.index("epsilon infinite") < page.said.index("A token went")
    found = rows(claims=claims)
    assert [row[1:] for row in found] == [
        ["◐ moderate", "1.5", "59.9", "exact", "public"],
        ["◐ moderate", "1", "59.9", "exact", "public"],
        ["● strong", "0.5", "59.9", "exact", "public"],
        ["✕ none", "infinite", "100", "exact", "public"],
    ]


def test_no_reassuring_word_stands_on_a_page_with_a_weak_number() -> None:
    page = read(summary(facts(claims=[claim(observer="network", method="local", epsilon_max=67.8)])))
    assert page.said.startswith("Weak protection")
    for word in ("strong", "moderate", "cannot", "not the numbers"):
        assert word not in page.said.partition("How to read")[0].lower()
    assert [name for name, _ in page.having(class_="verdict weak")] == ["p", "p"]


def test_a_guess_is_by_the_claim_that_says_most() -> None:
    two = [claim(method="local", mu_max=None), claim(epsilon_max=1.6, mu_max=0.5)]
    assert rows(claims=two)[0][2:4] == ["1.5", "59.9"], "Phi(0.25) = 0.5987, rounded up"
    assert rows(claims=two[:1])[0][2:4] == ["1.5", "81.8"], "e^1.5 / (1 + e^1.5)"
    given_view = [claim(method="hidden-path", conditioning="view", mu_max=None), claim(epsilon_max=1.6)]
    assert rows(claims=given_view)[0][2:4] == ["1.5", "81.8"], "of one conditioning only"


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
    assert rows(**given_view)[0][2:] == ["1.5", "60.1", "hidden-path", "view"], "(1 + 0.201) / 2, rounded up"
    assert "at most 60.1 times" in said(**given_view)
    assert rows(**given_view | {"conditioning": "public"})[0][3] == "81.8"


def test_infinite_pairs_are_counted_and_come_first() -> None:
    epsilon = matrix()
    epsilon[1, 0] = math.inf
    words = said(epsilon=epsilon)
    assert notes(epsilon=epsilon) == 1
    assert words.index("1 of 6 pairs") < words.index("ε = ∞")


def test_a_simulation_and_missing_records_are_told() -> None:
    hypothetical = claim(assumptions=("hypothetical: noise and routing came from a seed",))
    assert "seed 7" in said(claims=[hypothetical], outcome=outcome(seed=7))
    assert notes(claims=[hypothetical], outcome=None) == 1
    assert notes(verified="incomplete", outcome=outcome(missing=[2])) == 1
    assert "user 2" in said(verified="incomplete", outcome=outcome(missing=[2])).partition("How to read")[0]


def test_without_pairs_the_bounds_are_told() -> None:
    local = claim(observer="network", method="local", mu_max=None, worst_pair=(1, "network"), epsilon_max=3.0)
    found = rows(epsilon=None, claims=[claim(bound=False, epsilon_max=0.1), local])
    assert len(found) == 4
    assert {tuple(row[1:]) for row in found} == {("◐ moderate", "3", "95.3", "local", "public")}


def test_without_any_bound_that_is_what_is_said() -> None:
    for given in (None, np.full((3, 3), math.nan)):
        assert read(summary(facts(epsilon=given, claims=[claim(bound=False)]))).rows[1][1:4] == [
            "– refused",
            "no bound",
            "no bound",
        ]


def test_colluders_are_told() -> None:
    together = claim(observer="coalition", worst_pair=(0, (1, 2)), epsilon_max=4.0, mu_max=None)
    found = rows(claims=[claim(), together])[-1]
    assert (found[0].partition(": ")[2], found[1:4]) == ("1, 2", ["◐ moderate", "4", "98.3"])


def test_an_unknown_protocol_needs_no_words() -> None:
    words = said(protocol="walk.new")
    assert "A token" not in words
    assert "How much one user" in words
