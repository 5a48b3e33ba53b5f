from __future__ import annotations

import math
from typing import Any

import pytest

from p2pdp.audit.headline import reading_of
from p2pdp.core.words import PROTECTIONS
from p2pdp.report.headline import in_words


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
