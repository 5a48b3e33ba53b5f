from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from p2pdp.core.claims import Claim, Refusal
from p2pdp.report.html import html_page
from p2pdp.report.page.facts import Advice, Curve, Proof, Prospect
from tests.support.made import ADVICE, PROOF, claim, facts, matrix, outcome, read, refused

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;</style>\u202e"
EVERYTHING = facts(
    claims=[claim(), claim(method="published:x", bound=False, violated_pairs=3)],
    refusals=[refused()],
    outcome=outcome(faults={"gap": 1}, missing=[2]),
    verified="incomplete",
    about={"purpose": "a purpose", "allowed": "much"},
    proof=PROOF,
    advice=ADVICE,
    glossary={"bound": "a number", "epsilon, delta": "two numbers", "nowhere": "not used"},
)


def test_all_sections_are_there_and_the_list_on_top_leads_to_each() -> None:
    page = read(html_page(EVERYTHING))
    ids = [given["id"] for name, given in page.elements if name == "section"]
    links = [(given["href"] or "")[1:] for name, given in page.elements if name == "a"]
    wanted = (
        "summary limits about result advice claims published pairs distance curves refusals faults setting evidence "
        "budget assessment glossary"
    ).split()
    assert ids == links[: len(ids)] == wanted
    assert set(links) == set(ids)
    assert sum(name == "h1" for name, _ in page.elements) == 1


def test_what_there_is_not_has_no_section() -> None:
    bare = facts(nodes=1, epsilon=matrix(1), mu=None, distances=None, curves=[], claims=[claim(observer="public")])
    page = read(html_page(bare))
    ids = {given["id"] for name, given in page.elements if name == "section"}
    assert ids == set("summary limits about result claims refusals faults setting budget assessment glossary".split())
    assert "1 user," in page.said
    lone = read(html_page(facts(curves=[Curve("a", [(1e-5, 1.0)])])))
    assert not lone.having(id="curves")
    assert not read(html_page(facts(epsilon=None))).having(id="distance")


def test_the_same_facts_give_the_same_bytes() -> None:
    assert html_page(EVERYTHING) == html_page(replace(EVERYTHING))


def assert_harmless(made: str) -> None:
    """Nothing that runs, nothing that is fetched, and nothing but the page's own ids."""
    page = read(made)
    assert page.names().isdisjoint(
        {"script", "img", "iframe", "object", "embed", "link", "form", "base", "audio", "video"}
    )
    for name, given in page.elements:
        for attribute, value in given.items():
            assert not attribute.startswith("on"), (name, attribute)
            assert attribute not in {"src", "srcset", "style", "xlink:href", "action", "data"}
            if attribute == "href":
                assert re.fullmatch(r"#[a-z]+", value or "")
    assert "http://" not in made
    assert "https://" not in made


def test_a_page_is_harmless() -> None:
    assert_harmless(html_page(EVERYTHING))


def hostile(value: Any) -> Any:
    """The same with every text replaced by one that tries to break out."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, dict):
        return {hostile(key): hostile(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(hostile(part) for part in value)
    if isinstance(value, Claim | Refusal | Curve | Proof | Advice | Prospect) or type(value) is type(outcome()):
        return replace(value, **{item.name: hostile(getattr(value, item.name)) for item in fields(value)})
    return value


@pytest.mark.parametrize("item", [item.name for item in fields(EVERYTHING)])
def test_no_text_breaks_out_wherever_it_stands(item: str) -> None:
    changed = replace(EVERYTHING, **{item: hostile(getattr(EVERYTHING, item))})
    made = html_page(changed)
    assert_harmless(made)
    made.encode()
    assert "\u202e" not in made


def test_everything_hostile_at_once() -> None:
    changed = replace(EVERYTHING, **{item.name: hostile(getattr(EVERYTHING, item.name)) for item in fields(EVERYTHING)})
    made = html_page(changed)
    assert_harmless(made)
    assert "<script>alert(1)</script>" in read(made).said
