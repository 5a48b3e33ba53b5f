"""`report.html`: one file that a person reads without a network, and without having read the papers.

It is the auditor's edition; `report/participants.py` makes the one that everybody may read.

Guarantee: every text that comes from a spec, a path or a file is escaped; there is no script, no style attribute
and no address of anything, and a content security policy forbids the browser to fetch any. The same facts give the
same bytes. Numbers are rounded to four digits for reading: `audit.json` has them in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from p2pdp.report.page.claims import claims, published, refusals
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.leaks import curves, distance, map_of_pairs
from p2pdp.report.page.markup import Markup, Section, document, note, paragraph, table, tag
from p2pdp.report.page.pairs import known
from p2pdp.report.page.record import about, advice, assessment, budget, confidential, evidence, glossary, limits
from p2pdp.report.page.results import faults, result, setting
from p2pdp.report.page.sharing import sharing
from p2pdp.report.page.summary import summary
from p2pdp.report.page.words import number

if TYPE_CHECKING:
    from p2pdp.report.result import Result

_HEADING: Final = "Who could have learned what"
_CLOSING: Final = (
    "Numbers are rounded to four digits; audit.json holds them in full. Users are counted from 0. The claims are about "
    "honest users who keep to the protocol: not about users who lie, traffic analysis, or whoever reads a user's disk."
)
_FOR_YOU: Final = "This page tells routes, so it is for the launcher or the auditor only."


def html_page(facts: PageFacts) -> str:
    people = f"{facts.nodes} users" if facts.nodes != 1 else "1 user"
    opening = paragraph(facts.protocol, f", {people}, run ", tag("code", facts.run_id, class_="any"), soft=True)
    sections = [
        *front_sections(facts, result(facts)),
        Section("claims", "claims", "What each kind of observer could have learned", claims(facts)),
        *_details(facts),
        Section("refusals", "refused", "Not proven, and why", refusals(facts)),
        Section("faults", "faults", "What went wrong on the way", faults(facts)),
        Section("setting", "setting", "How the run was set up", setting(facts)),
        *closing_sections(facts),
    ]
    sections.append(Section("glossary", "glossary", "Terms on this page", glossary(facts.glossary, sections)))
    title = f"{facts.protocol}, {people}: {_HEADING.lower()}"
    return document(title, _HEADING, [opening, confidential(facts)], sections, _CLOSING)


def failed_page(found: Result) -> str:
    """Return the page of a run whose ledgers did not pass verification: what is wrong, and no claim."""
    people = f"{found.nodes} users" if found.nodes != 1 else "1 user"
    heading = "Verification failed"
    opening = paragraph(found.protocol, f", {people}, run ", tag("code", found.run_id, class_="any"), soft=True)
    warning = note("The result may be false.", "The ledgers of this run contradict each other or the protocol.")
    told = [
        paragraph("The first thing that is wrong: ", found.audit_problem, "."),
        paragraph("p2pdp verify lists everything that is. Without verified ledgers there is no claim about privacy."),
    ]
    if found.estimate is not None and not isinstance(found.estimate, list):
        told.append(table(("", ""), [("estimate, not to be relied on", number(found.estimate))], numbers=(1,)))
    sections = [Section("problem", "what is wrong", "What is wrong", told)]
    return document(f"{found.protocol}, {people}: {heading.lower()}", heading, [opening, warning], sections, _FOR_YOU)


def front_sections(facts: PageFacts, came_out: Sequence[Markup]) -> list[Section]:
    """Return what stands at the beginning of both editions; `came_out` shows the result."""
    more_noise = facts.advice
    return [
        Section("summary", "in short", "In short", summary(facts)),
        Section("limits", "limits", "What this does not protect against", limits()),
        Section("about", "who ran what", "Who ran what", about(facts)),
        Section("result", "result", "What came out", came_out),
        *([] if more_noise is None else [Section("advice", "more noise", "If this is too much", advice(more_noise))]),
    ]


def closing_sections(facts: PageFacts) -> list[Section]:
    """Return what stands at the end of both editions."""
    proof = facts.proof
    found = [] if proof is None else [Section("evidence", "evidence", "Check this yourself", evidence(facts, proof))]
    found.append(Section("budget", "budget", "Budget so far", budget(facts)))
    return [*found, Section("assessment", "assessment", "For an impact assessment", assessment(facts))]


def _details(facts: PageFacts) -> list[Section]:
    """Return the sections that only some runs have."""
    sections = []
    if facts.published:
        sections.append(Section("published", "published formulas", "What the papers would print", published(facts)))
    if facts.nodes > 1:
        sections.append(Section("pairs", "pairs", "Who could have learned how much about whom", map_of_pairs(facts)))
    if facts.nodes > 1 and known(facts.epsilon):
        sections.append(Section("distance", "distance", "Does distance help?", distance(facts)))
    if facts.sharing is not None:
        sections.append(Section("sharing", "shared noise", "Who shares noise with whom", sharing(facts.sharing)))
    if any(len(curve.points) > 1 for curve in facts.curves):
        sections.append(Section("curves", "ε and δ", "The same claims at other δ", curves(facts)))
    return sections
