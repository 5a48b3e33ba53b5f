from __future__ import annotations

import math

from p2pdp.report.page.claims import claims, published, refusals
from tests.support.made import claim, facts, read, refused


def test_every_term_of_a_claim_is_there_and_explained() -> None:
    other = claim(
        observer="curator",
        epsilon_max=math.inf,
        mu_max=None,
        worst_pair=(1, "curator"),
        assumptions=("b", "the sky is blue"),
    )
    page = read(claims(facts(claims=[claim(), other])))
    for words in (
        "another user 1.5 0.75 0.5 user 0, seen by user 2 exact public a1",
        "the curator infinite 0.75 user 1 exact public a2, a1",
        "a1 the sky is blue",
        "a2 b",
        "unit user, relation replace",
        "method exact computed for this run",
        "assumed to know: public given the whole route",
    ):
        assert words in page.said
    assert "broker" not in page.said, "only what stands in the table is explained"


def test_claims_of_different_conditioning_stand_beside_each_other() -> None:
    view = claim(method="hidden-path", conditioning="view", mu_max=None, mu_mean=None, epsilon_max=0.7)
    words = read(claims(facts(claims=[claim(), view], conditioning="view"))).said
    assert "hidden-path view" in words
    assert "never the smallest" in words


def test_published_formulas_are_marked_and_kept_apart() -> None:
    printed = claim(method="published:table1", bound=False, epsilon_max=0.125, violated_pairs=12)
    both = facts(claims=[claim(), printed])
    words = read(published(both)).said
    assert "Published, not a bound." in words
    assert "0.125" in words
    assert "12 ordered pairs" in words
    assert "published:table1" not in read(claims(both)).said


def test_without_a_bound_the_table_is_a_sentence() -> None:
    assert "No claim is left" in read(claims(facts(claims=[claim(bound=False)]))).said


def test_refusals_of_one_reason_are_said_once() -> None:
    made = facts(refusals=[refused(), refused("public"), refused("public"), refused("node", "<b>user 3: gone</b>")])
    page = read(refusals(made))
    assert [row[-1] for row in page.rows[1:]] == ["it was raining", "<b>user 3: gone</b>"]
    assert page.rows[1][0] == "the curator, the public"
    assert "b" not in page.names()
    assert "Nothing was refused" in read(refusals(facts())).said


def test_an_unknown_observer_is_called_by_its_name() -> None:
    assert "somebody new" in read(refusals(facts(refusals=[refused("somebody new")]))).said


def test_models_are_told_from_formulas() -> None:
    model = claim(observer="node", method="model:non-adaptive", bound=False)
    printed = claim(method="published:theorem-1", bound=False)
    assert "worked out for a model" in read(published(facts(claims=[printed, model]))).said
    assert "worked out for a model" not in read(published(facts(claims=[printed]))).said
