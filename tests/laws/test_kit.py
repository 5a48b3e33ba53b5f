"""Claims are made in one place, so that none goes without its unit, its relation or a mean below its largest value."""

from __future__ import annotations

import ast

from tests.support.sources import Source, sources

KIT = "p2pdp/auditor/claims.py"


def makes_claims(source: Source) -> list[str]:
    if source.path == KIT:
        return []
    return [
        source.say(node, "claims are made by claim_of and its kin in auditor/claims.py, or by replacing parts of one")
        for node in source.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Claim"
    ]


def test_claims_are_made_in_one_place() -> None:
    assert [text for source in sources("p2pdp") for text in makes_claims(source)] == []


def test_the_law_sees_a_claim_that_is_made_elsewhere() -> None:
    text = "found = Claim(observer)\nother = claims.Claim(observer)\nthird = replace(claim, bound=False)\n"
    assert [said.split(": ")[0] for said in makes_claims(Source("p2pdp/runs/x.py", text))] == [
        "p2pdp/runs/x.py:1",
        "p2pdp/runs/x.py:2",
    ]
    assert makes_claims(Source(KIT, text)) == []
