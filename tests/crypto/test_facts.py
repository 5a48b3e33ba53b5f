from __future__ import annotations

import pytest

from p2pdp.crypto.facts import Fact, problem_of


@pytest.mark.parametrize("value", [0, -(1 << 63), (1 << 63) - 1, "", "text", 0.5, -1e300])
def test_facts_are_text_and_finite_numbers(value: Fact) -> None:
    assert problem_of([("a", value), ("b", value)]) is None


@pytest.mark.parametrize("value", [None, True, b"bytes", 1 << 63, float("nan"), float("inf"), [1]])
def test_what_no_fact_can_be_is_named(value: object) -> None:
    assert "'b'" in (problem_of([("a", 1), ("b", value)]) or "")  # type: ignore[list-item]


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"], [1]])
def test_names_stand_once_and_in_order(names: list[str]) -> None:
    assert problem_of([(name, 1) for name in names]) == "the facts of a roster must have names, each once, in order"
