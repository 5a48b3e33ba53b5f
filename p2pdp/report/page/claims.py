"""All claims with their terms, published formulas beside them, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from p2pdp.core.claims import Claim
from p2pdp.core.words import (
    CONDITIONINGS,
    OBSERVERS,
    method_name,
    method_words,
    observer_name,
    relation_words,
    unit_words,
)
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.markup import Markup, join, more, note, paragraph, table, tag
from p2pdp.report.page.words import number, observer, worst

_MU: Final = (
    "the same leak on another scale: telling two values apart is as hard as telling whether a normal random number of "
    "deviation 1 was moved by μ"
)
_MODEL: Final = "What is called a model was worked out for a model of the run, not for the run: no bound either."


def claims(facts: PageFacts) -> list[Markup]:
    if not facts.bounds:
        return [note("None.", "No claim is left whose assumptions hold.")]
    listed = _assumptions(facts.bounds)
    return [
        paragraph(
            "Each line is proven under the assumptions below. Lines that are given a-priori hold before the run, over "
            "all routes that it may take: given the route that it took, a bound may be larger. Lines that assume "
            "different knowledge of the observer answer different questions: take the one that fits, never the "
            "smallest.",
        ),
        _table(facts.bounds, listed),
        _numbered(listed, "a"),
        _legend(facts.bounds),
    ]


def published(facts: PageFacts) -> list[Markup]:
    """Show and mark formulas that do not hold as printed, or not for single pairs; they count for nothing."""
    listed = _assumptions(facts.published)
    parts = [
        paragraph(
            tag("strong", "Published, not a bound. "),
            "These are formulas as printed in the papers. They prove nothing for this run: they rest on steps that do "
            "not hold, or not for single pairs. They are here to compare, and nothing on this page relies on them. ",
            _MODEL if any(claim.method.startswith("model:") for claim in facts.published) else "",
        ),
        _table(facts.published, listed, letter="p"),
        _numbered(listed, "p"),
    ]
    parts += [
        paragraph(
            f"{claim.method} ({observer(claim)}): the exact value is above the printed one for "
            f"{claim.violated_pairs} ordered pairs of users in this very run."
        )
        for claim in facts.published
        if claim.violated_pairs
    ]
    return parts


def refusals(facts: PageFacts) -> list[Markup]:
    if not facts.refusals:
        return [paragraph("Nothing was refused.")]
    together: dict[tuple[str, str], list[str]] = {}
    for refusal in facts.refusals:
        name = observer_name(refusal.observer)
        seen = together.setdefault((refusal.method, refusal.reason), [])
        if name not in seen:
            seen.append(name)
    rows = [(", ".join(names), kind, reason) for (kind, reason), names in together.items()]
    return [
        paragraph("Where the assumptions of a method do not hold, or records are missing, there is no number."),
        table(("about", "method", "why not"), rows),
    ]


def _assumptions(claims: Iterable[Claim]) -> list[str]:
    return list(dict.fromkeys(text for claim in claims for text in claim.assumptions))


def _table(claims: Sequence[Claim], listed: Sequence[str], *, letter: str = "a") -> Markup:
    headings = ("observer", "worst ε", "mean ε", "worst μ", "worst case", "method", "assumed to know", "assumes")
    rows = []
    for claim in claims:
        numbers = ", ".join(f"{letter}{listed.index(text) + 1}" for text in claim.assumptions)
        mu = "" if claim.mu_max is None else number(claim.mu_max)
        rows.append((
            observer(claim), number(claim.epsilon_max), number(claim.epsilon_mean), mu, worst(claim),
            method_name(claim), claim.conditioning, numbers,
        ))  # fmt: skip
    return table(headings, rows, numbers=(1, 2, 3))


def _numbered(listed: Sequence[str], letter: str) -> Markup:
    if not listed:
        return Markup()
    rows = [tag("li", tag("strong", f"{letter}{place}"), " ", text) for place, text in enumerate(listed, start=1)]
    return join([tag("h3", "Assumptions"), tag("ul", *rows)])


def _legend(claims: Sequence[Claim]) -> Markup:
    """Explain only what stands in the table."""
    shown = {claim.observer for claim in claims}
    given = {claim.conditioning for claim in claims}
    first = claims[0]
    terms = [
        *(named for observer_kind, named in OBSERVERS.items() if observer_kind in shown),
        *((f"method {name}", method_words(name)) for name in dict.fromkeys(claim.method for claim in claims)),
        *((f"assumed to know: {name}", text) for name, text in CONDITIONINGS.items() if name in given),
        *(
            (f"unit {unit}, relation {relation}", f"{unit_words(unit).hidden}: {relation_words(relation)}")
            for unit, relation in dict.fromkeys((claim.unit, claim.relation) for claim in claims)
        ),
        ("worst and mean ε", f"over all users (and observers, where there are many), at δ = {number(first.delta)}"),
    ]
    if any(claim.mu_max is not None for claim in claims):
        terms.append(("μ", _MU))
    return more("What the columns mean", tag("dl", *(join([tag("dt", name), tag("dd", text)]) for name, text in terms)))
