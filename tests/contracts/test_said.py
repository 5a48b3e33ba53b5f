"""Every number that the README and the guide claim is recomputed, held by a named test, or exempt with a reason."""

from __future__ import annotations

import dataclasses
import re

import pytest

import p2pdp
from tests.support.said import CLAIM, EXEMPT, HELD, SAID, Held, Said, flowing, numbers_in, pages, same, unsaid
from tests.support.sources import TOP


@pytest.mark.parametrize("one", SAID, ids=lambda one: f"{one.page}: {one.pattern[:40]}")
def test_numbers_are_what_the_code_computes(one: Said) -> None:
    (found,) = flowing(one.pattern).finditer(pages()[one.page])
    printed, computed = numbers_in(found), list(one.numbers())
    assert len(printed) == len(computed)
    assert [(text, value) for text, value in zip(printed, computed, strict=True) if not same(text, value)] == []


@pytest.mark.parametrize("one", HELD, ids=lambda one: f"{one.page}: {one.pattern[:40]}")
def test_other_tests_hold_what_they_are_said_to_hold(one: Held) -> None:
    assert len(flowing(one.pattern).findall(pages()[one.page])) == one.pattern.count("|") - one.pattern.count(r"\|") + 1
    text = (TOP / one.test).read_text()
    assert [words for words in one.words if words not in text] == []


def test_what_the_example_of_a_sweep_says_of_placements() -> None:
    """In words: up to nine colluders all hide each other; with twelve two do, since most placements break."""
    words = r"With twelve, more than half of the random placements .*? degree 8 .*? only two users"
    assert flowing(words).search(pages()["sweep"])
    spec = p2pdp.load_spec(TOP / "deploy" / "samples" / "pairwise_sum.toml")
    nine, twelve = (
        p2pdp.plan(dataclasses.replace(spec, privacy=dataclasses.replace(spec.privacy, colluders_max=count))).to_json()
        for count in (9, 12)
    )
    assert spec.graph.degree == 8
    assert nine["outlook"]["hidden"] == nine["outlook"]["honest_left"]
    assert twelve["outlook"]["hidden"] == 2
    assert nine["outlook"]["broken"] < 0.5 < twelve["outlook"]["broken"]


@pytest.mark.parametrize("name", list(pages()))
def test_no_number_goes_unchecked(name: str) -> None:
    assert unsaid(name, pages()[name]) == []


def test_no_exemption_is_left_over() -> None:
    for one in EXEMPT:
        texts = [pages()[one.page]] if one.page else pages().values()
        assert one.reason
        assert any(flowing(one.pattern).search(text) for text in texts), one


def test_the_law_sees_new_claims() -> None:
    text = "It costs 3 % and 40 rounds, see [CB20, Theorem 3].\nEpsilon is 7; `0.5` is code.\n"
    text += "```\n1.5\n```\nAt 2.25, 1e-6.\n"
    assert unsaid("walks", text) == [
        "walks:1: 3", "walks:1: 40", "walks:2: Epsilon is 7", "walks:6: 2.25", "walks:6: 1e-6",
    ]  # fmt: skip
    assert CLAIM.search("user 3 of graph 4, in section 5") is None


@pytest.mark.parametrize(
    ("text", "value", "right"),
    [("0.82", 0.8182, True), ("0.81", 0.8182, False), ("3.2e-6", 3.246e-6, True), ("3.3e-6", 3.246e-6, False),
     ("200000", 200_000, True), ("36.3046904261959", 36.30469042623438, True), ("15", 16, False)],
)  # fmt: skip
def test_a_printed_number_is_rounded_not_near(text: str, value: float, right: bool) -> None:
    assert same(text, value) is right


def test_patterns_reach_over_lines() -> None:
    found = flowing(r"at ([\d,]+) users").search("at\n1,000\nusers")
    assert found is not None
    assert numbers_in(found) == ["1000"]
    assert re.fullmatch(r"\d+", numbers_in(found)[0])
