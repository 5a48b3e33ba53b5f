"""`report.html`: one file that a person reads without a network, and without having read the papers.

Guarantee: every text that comes from a spec, a path or a file is escaped; there is no script, no style attribute
and no address of anything, and a content security policy forbids the browser to fetch any. The same facts give the
same bytes. Numbers are rounded to four digits for reading: `audit.json` has them in full.
"""

from __future__ import annotations

from typing import Final

from p2pdp.report.page.claims import claims, published, refusals
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.leaks import curves, distance, map_of_pairs
from p2pdp.report.page.markup import Section, document, paragraph, tag
from p2pdp.report.page.pairs import known
from p2pdp.report.page.results import faults, result, setting
from p2pdp.report.page.summary import summary

_HEADING: Final = "Who could have learned what"
_CLOSING: Final = (
    "Numbers are rounded to four digits; audit.json holds them in full. Users are counted from 0. The claims are about "
    "honest users who keep to the protocol: not about users who lie, traffic analysis, or whoever reads a user's disk."
)


def html_page(facts: PageFacts) -> str:
    people = f"{facts.nodes} users" if facts.nodes != 1 else "1 user"
    opening = paragraph(facts.protocol, f", {people}, run ", tag("code", facts.run_id, class_="any"), soft=True)
    sections = [
        Section("summary", "in short", "In short", summary(facts)),
        Section("result", "result", "What came out", result(facts)),
        Section("claims", "claims", "What each kind of observer could have learned", claims(facts)),
    ]
    if facts.published:
        sections.append(Section("published", "published formulas", "What the papers would print", published(facts)))
    if facts.nodes > 1:
        sections.append(Section("pairs", "pairs", "Who could have learned how much about whom", map_of_pairs(facts)))
    if facts.nodes > 1 and known(facts.epsilon):
        sections.append(Section("distance", "distance", "Does distance help?", distance(facts)))
    if any(len(curve.points) > 1 for curve in facts.curves):
        sections.append(Section("curves", "ε and δ", "The same claims at other δ", curves(facts)))
    sections += [
        Section("refusals", "refused", "Not proven, and why", refusals(facts)),
        Section("faults", "faults", "What went wrong on the way", faults(facts)),
        Section("setting", "setting", "How the run was set up", setting(facts)),
    ]
    title = f"{facts.protocol}, {people}: {_HEADING.lower()}"
    return document(title, _HEADING, [opening], sections, _CLOSING)
