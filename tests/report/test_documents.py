from __future__ import annotations

import json
import math
from dataclasses import fields, replace

from p2pdp.auditor.headline import verdict_of
from p2pdp.core.claims import Claim, Method, Observer, Refusal
from p2pdp.report.documents import bound_document, claim_document, plain, refusal_document, verdict_document

CLAIM = Claim(
    "coalition", "user", "replace", 1e-6, "exact", "public", math.inf, None, 2.5, None, (3, (1, 2)), True, 4, ("a", "b")
)


def test_infinity_is_a_text_and_nothing_is_not_a_number() -> None:
    document = plain({"a": [math.inf, (math.nan, 1.5)], "b": {"c": math.inf}, "d": None, "e": True, "f": 3, "g": "x"})
    assert document == {"a": ["inf", [None, 1.5]], "b": {"c": "inf"}, "d": None, "e": True, "f": 3, "g": "x"}
    json.dumps(document, allow_nan=False)


def test_a_claim_has_all_its_fields_in_order() -> None:
    document = claim_document(CLAIM)
    assert list(document) == [field.name for field in fields(Claim)]
    assert document["epsilon_max"] == "inf"
    assert document["epsilon_mean"] is None
    assert document["worst_pair"] == [3, [1, 2]]
    assert document["assumptions"] == ["a", "b"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_refusal_says_who_how_and_why() -> None:
    refusal = Refusal("node", "exact", "because")
    assert refusal_document(refusal) == {"observer": "node", "method": "exact", "reason": "because"}


def test_headline_and_worst_have_the_fields_of_a_bound() -> None:
    verdict = verdict_of([CLAIM, replace(CLAIM, observer="node", epsilon_max=2.0)], [], 1, 1e-5)
    document = verdict_document(verdict)
    assert list(document) == ["headline", "worst"]
    assert document["worst"] == {
        "observer": "coalition", "method": "exact", "conditioning": "public", "epsilon": "inf", "delta": 1e-6,
        "reading": "none",
    }  # fmt: skip
    assert document["headline"] == bound_document(verdict.headline)
    assert document["headline"]["method"] is None, "there is no claim about the curator"
    assert verdict_document(None) == {"headline": None, "worst": None}


def test_names_of_terms_are_plain_texts() -> None:
    """Documents are printed from Python too, where an enum's member would show as such."""
    found = plain({"a": [Observer.NODE, Method.EXACT]})
    assert repr(found) == "{'a': ['node', 'exact']}"
