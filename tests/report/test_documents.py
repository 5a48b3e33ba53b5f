from __future__ import annotations

import json
import math
from dataclasses import fields

from p2pdp.core.claims import Claim, Refusal
from p2pdp.report.documents import claim_document, claim_of, plain, refusal_document

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


def test_a_claim_can_be_had_from_its_document_again() -> None:
    assert claim_of(claim_document(CLAIM)) == CLAIM
    assert claim_of(json.loads(json.dumps(claim_document(CLAIM)))) == CLAIM
