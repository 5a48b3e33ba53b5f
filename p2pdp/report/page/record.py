"""The parts of the page that a person who signs needs besides the numbers.

Who ran what, limits, what to change, evidence, budget, and the terms of an impact assessment and of the page.

None of it depends on what happened in the run but for the ends of ledgers, which only the auditor's edition has.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

from p2pdp.core.words import LIMITS
from p2pdp.report.page.facts import AUDITOR, OWNER, Advice, PageFacts, Proof
from p2pdp.report.page.markup import Markup, Section, join, more, note, paragraph, table, tag
from p2pdp.report.page.words import number

_LISTED_MAX: Final = 200
_OF_AUDITOR: Final = (
    "To check this page, take the run's folder, or a file that p2pdp export made of it, for FILE. The first command "
    "prints these digests if the ledgers are unaltered and consistent, the second the claims."
)
_OF_PARTICIPANTS: Final = (
    "To check that this page is about the run in which your own node took part, take the folder of your node for FILE: "
    "the first command prints the digests of its spec and roster, if its ledger is unaltered. Whoever has an exported "
    "file of the whole run can audit it by the second."
)
_OF_OWNER: Final = (
    "To check this page, take the node's folder for FILE. The first command prints these digests if the node's ledger "
    "is unaltered, the second everything that the node received."
)
_ASKED: Final[Mapping[str, str]] = {  # what an impact assessment asks for, and where it is
    "description of the processing": "“Who ran what”. Purpose and lawful basis are the controllers' to state: the "
    "purpose is shown where the spec names it.",
    "necessity and proportionality": "Raw data stay with their owners. How large the standard error is for this "
    "protection, and for more of it, is in “What came out” and “If this is too much”.",
    "recipients": "The observers in the table of “In short”. Curator and public receive what was published.",
    "risk to a person: likelihood": "“Best guess right”: how often somebody who has narrowed a user's data down to two "
    "values picks the right one, where 50 of 100 is chance. Where a node holds rows of many people, each of them is "
    "protected at least as well as all of them together.",
    "risk to a person: severity": "It depends on what the values mean, which this page cannot know.",
    "measures": "Noise as the spec sets it, encryption between neighbours, signed users, ledgers that can be checked.",
    "residual risk": "The worst observer's ε (RESIDUAL), the limits above, and what could not be proven.",
    "personal data or anonymous": "An ε decides neither. It bounds singling out, linking and inference as far as they "
    "rest on this run.",
}


def confidential(facts: PageFacts) -> Markup:
    """Say whom the auditor's edition is for; it stands on top."""
    has_truth = facts.outcome is not None and facts.outcome.truth is not None
    truth = "It holds the result without noise, which protects nobody, and" if has_truth else "It holds"
    return note(
        "Confidential: do not pass this page on.",
        f"{truth} numbers that tell the route of the messages, on whose being hidden claims may rest. The edition for "
        "everybody else: p2pdp report DIR --for participants.",
    )


def about(facts: PageFacts) -> list[Markup]:
    """Return who ran what on which data, and when."""
    outcome, proof = facts.outcome, facts.proof
    rows: list[tuple[object, object]] = list(facts.about.items())
    started = facts.started if outcome is None else outcome.started
    if started is not None:
        rows.append(("date", started))
    rows.append(("run", tag("code", facts.run_id, class_="any")))
    if proof is not None:
        key = tag("code", proof.bootstrap, class_="any")
        rows.append(("who set it up", join(["the holder of the key ", key, ", who signed spec and users"])))
        rows.append(("made with", f"p2pdp {proof.version}"))
    return [table(("", ""), rows)]


def limits() -> list[Markup]:
    return [tag("ul", *(tag("li", tag("strong", name), " ", said) for name, said in LIMITS))]


def advice(found: Advice) -> list[Markup]:
    """Return what the same run would cost with more noise, and the line to copy."""
    if not found.line:
        return [paragraph(found.reason)]
    parts = [
        paragraph(
            "Before a run, over all routes that it could take: for one run an audit finds other numbers, which may be "
            "smaller or larger. The first row is this run's noise; the second has twice its sigma, or half its epsilon."
        )
    ]
    if found.prospects:
        rows = [
            (one.noise, number(one.epsilon), number(one.worst), number(one.standard_error)) for one in found.prospects
        ]
        headings = ("noise", "ε: others", "ε: worst observer", "standard error")
        parts.append(table(headings, rows, numbers=(1, 2, 3)))
        if all(one.worst == math.inf for one in found.prospects):
            parts.append(
                paragraph(
                    "Where ε is infinite more noise changes nothing: the observer sees something that no noise covers, "
                    "or no method gives a bound."
                )
            )
    else:
        parts = [paragraph(f"{found.reason} p2pdp plan works out what it is for.")]
    parts.append(paragraph("To try it, give this option to plan, and then to run or in the spec:"))
    parts.append(tag("pre", f"p2pdp plan SPEC {found.line}"))
    parts.append(paragraph("The least noise for a given ε: ", tag("code", "p2pdp plan SPEC --target-epsilon 1"), "."))
    return parts


def evidence(facts: PageFacts, proof: Proof) -> list[Markup]:
    """Return the digests that tie the page to a run, and the commands that check them."""
    rows: list[tuple[object, object]] = [
        ("spec", _code(proof.spec)),
        ("users (roster)", _code(proof.roster)),
        ("bootstrap's public key", _code(proof.bootstrap)),
        ("its signature on the roster, which names the spec", _code(proof.signature)),
    ]
    if proof.together is not None:
        rows.append(("all ledgers together", _code(proof.together)))
    parts = [table(("digest", ""), rows)]
    if proof.ledgers:
        ends = [(name, _code(end)) for name, end in list(proof.ledgers.items())[:_LISTED_MAX]]
        cut = f" (the first {_LISTED_MAX} of {len(proof.ledgers)})" if len(proof.ledgers) > _LISTED_MAX else ""
        parts.append(more(f"The end of each ledger{cut}", table(("ledger of", "hash of its last record"), ends)))
    how = {AUDITOR: _OF_AUDITOR, OWNER: _OF_OWNER}.get(facts.reader, _OF_PARTICIPANTS)
    return [*parts, paragraph(how), tag("pre", f"p2pdp verify FILE\n{proof.audit}")]


def _code(value: str) -> Markup:
    return tag("code", value, class_="any")


def assessment(facts: PageFacts) -> list[Markup]:
    """Say where an impact assessment finds on this page what it asks for, and leave room to sign."""
    worst = facts.verdict.worst
    residual = "every observer has a finite bound" if worst.epsilon < math.inf else "for the worst observer none"
    rows = [(asked, said.replace("RESIDUAL", residual)) for asked, said in _ASKED.items()]
    signed = table(("assessed by", "role", "decision", "date, signature"), [(Markup("&#160;"), "", "", "")])
    return [
        paragraph("In the terms of a data-protection impact assessment. This page is no legal advice."),
        table(("asked for", "on this page"), rows),
        tag("div", signed, class_="sign"),
    ]


def budget(facts: PageFacts) -> list[Markup]:
    """Say where an owner finds what all runs on its data cost together, which no run knows."""
    if facts.budget is not None:
        return [paragraph(facts.budget)]
    allowed = facts.about.get("allowed")
    return [
        paragraph(
            "The ε of several runs on the same data add up, and this page is about one run. Each owner's node keeps an "
            "account of its own, in the file that [budget] of its configuration names: no other party has it. The node "
            "shows what a run would charge before it joins, and refuses a run that exceeds what is left. Ask every "
            "owner for the sum.",
            f" Of this run the spec allows {allowed}." if allowed else "",
        )
    ]


def glossary(terms: Mapping[str, str], sections: Iterable[Section]) -> list[Markup]:
    """Return those terms of the guide's glossary that stand in these sections."""
    parts = join([part for section in sections for part in (section.title, " ", *section.parts)], " ")
    said = html.unescape(re.sub(r"<[^>]*>", " ", parts)).lower()
    used = [(name, meaning) for name, meaning in terms.items() if any(_stands(one, said) for one in name.split(", "))]
    return [tag("dl", *(tag("div", tag("dt", name), tag("dd", meaning)) for name, meaning in used), class_="terms")]


def _stands(term: str, said: str) -> bool:
    word = re.escape(term.partition(" (")[0].lower())
    return re.search(rf"\b{word}s?\b", said) is not None
