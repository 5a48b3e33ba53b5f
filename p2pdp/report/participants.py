"""The participants' edition of a run: what everybody who took part may read, as a document and as a page.

An auditor's numbers depend on the route that was taken. Whoever reads them learns a part of it, and the claims about
this reader, which rest on a route that it does not know, are void. So documents have readers.

Everybody may read what follows from the signed spec and roster, what the curator published, and who was put out, which
is announced: protocol, users, the planned number of hops or rounds, estimate and standard error made of the published
total and the plan alone, and claims a priori, which average over routes.

For the auditor, or the launcher of a local run, are:

* claims given a view or the public route, worst pairs in them, visit counts and traffic: they tell the route;
* numbers of messages and bytes: a hop to oneself needs no message, so they tell how often the token stayed;
* durations: such a hop takes no network time, so they tell the same;
* faults by kind: their counts grow with messages, and whoever causes a fault could count on them;
* the result without noise, the error, scores on the users' rows, and values of single users: they tell data. Scores of
  a published model on declared public rows tell nothing more than the model, and are for everybody;
* the seed of a simulated run, which tells everything, and paths on the launcher's machine.

Where the graph is not public, the worst pairs of claims a priori are left out too: they tell who is central in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from p2pdp.assembly.outcome import Number
from p2pdp.auditor.a_priori import NO_SKELETON
from p2pdp.auditor.claims import READABLE
from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.auditor.headline import Verdict, verdict_of
from p2pdp.core.claims import Claim, Conditioning, Refusal
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.documents import (
    advice_document,
    claim_document,
    plain,
    proof_document,
    refusal_document,
    verdict_document,
)
from p2pdp.report.html import closing_sections, front_sections
from p2pdp.report.page.claims import claims as claims_part
from p2pdp.report.page.claims import refusals as refusals_part
from p2pdp.report.page.curves import public_rows
from p2pdp.report.page.facts import OWNER, PARTICIPANTS, Advice, PageFacts, Proof
from p2pdp.report.page.markup import Section, document, note, paragraph, table, tag, with_small
from p2pdp.report.page.record import glossary
from p2pdp.report.page.words import number, users

_OUT: Final = "user {user} was put out, and claims a priori hold for runs in which all users take part to the end"
_HEADING: Final = "What came out, and what taking part can have told"
_ROWS_MAX: Final = 200
FAILED: Final = (
    "Verification failed: the ledgers of this run contradict each other or the protocol. The result may be false, and "
    "no number on this page can be relied on. The auditor's files say which ledger is wrong."
)
_LEFT_OUT: Final = (
    "This is the participants' edition. It holds nothing that depends on the route that messages took: no number of "
    "messages, no duration, no claim given the route. Such numbers would tell their reader a part of the route, on "
    "whose being hidden the claims above rest. They are for the auditor, to whom nodes can hand in their records."
)
_OF_OWNER: Final = (
    "This is the edition of one node's owner, made from the node's own folder alone: what other parties saw is not in "
    "it. The bounds are those that hold before a run, or that the node's own ledger tells."
)


@dataclass(frozen=True)
class Edition:
    """The part of a run that participants may read, by the rule above."""

    run_id: str
    seeded: bool
    started: str | None
    run: RunPlan
    estimate: Number
    standard_error: Number
    missing: Sequence[Peer]
    claims: Sequence[Claim]
    refusals: Sequence[Refusal]
    about: Mapping[str, str] = field(default_factory=dict)
    proof: Proof | None = None
    advice: Advice | None = None
    glossary: Mapping[str, str] = field(default_factory=dict)
    reader: str = PARTICIPANTS
    budget: str | None = None  # of the owner of a node, who is the reader then
    failed: bool = False  # the ledgers did not pass verification
    public_scores: Mapping[str, float | None] | None = None  # of the published model, on declared public rows

    @property
    def delta(self) -> float:
        assert self.run.spec.privacy.delta is not None
        return self.run.spec.privacy.delta

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.claims, self.refusals, self.run.n, self.delta)

    def to_json(self) -> dict[str, Any]:
        spec, length = self.run.spec, self.run.plan.length
        found: dict[str, Any] = plain(
            {
                "edition": PARTICIPANTS,
                "run_id": self.run_id,
                "protocol": spec.run.protocol,
                "transport": spec.run.transport,
                "nodes": self.run.n,
                "graph": spec.graph.kind if spec.graph.public else None,
                "seeded": self.seeded,
                "started": self.started,
                "rounds" if self.run.completes_per_user else "hops": length,
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "missing": sorted(self.missing),
                "delta": self.delta,
                **verdict_document(self.verdict),
                "claims": [claim_document(claim) for claim in self.claims],
                "refusals": [refusal_document(refusal) for refusal in self.refusals],
                "about": dict(self.about),
                "digests": None if self.proof is None else proof_document(self.proof),
                "version": None if self.proof is None else self.proof.version,
                "more_noise": None if self.advice is None else advice_document(self.advice),
            }
        )
        if self.public_scores is not None:
            found["public_scores"] = plain(dict(self.public_scores))
        return {**found, "verification_failed": True} if self.failed else found


def sayable(
    run: RunPlan, claims: Sequence[Claim], refusals: Sequence[Refusal], missing: Sequence[Peer], *, readable: bool
) -> tuple[list[Claim], list[Refusal]]:
    """Return the a-priori claims that hold for a run that happened, and refusals for the others.

    `readable`: some user handed in a skeleton that the curator can read.
    """
    kept, refused = [], list(refusals)
    for claim in claims:
        if missing and NOBODY_OUT in claim.assumptions:
            refused.append(Refusal(claim.observer, claim.method, _OUT.format(user=min(missing))))
        elif readable and NO_SKELETON in claim.assumptions:
            refused.append(Refusal(claim.observer, claim.method, READABLE))
        else:
            held = tuple(text for text in claim.assumptions if text not in (NOBODY_OUT, NO_SKELETON))
            worst = claim.worst_pair if run.spec.graph.public else None
            kept.append(replace(claim, assumptions=held, worst_pair=worst))
    return kept, list(dict.fromkeys(refused))


def page(edition: Edition) -> str:
    """Return the document as a page for a browser."""
    facts = _facts(edition)
    protocol, n = facts.protocol, facts.nodes
    opening = [paragraph(protocol, f", {n} users, run ", tag("code", edition.run_id, class_="any"), soft=True)]
    if edition.failed:
        opening.append(note(FAILED))
    left_out = _OF_OWNER if edition.reader == OWNER else _LEFT_OUT
    sections = [
        *front_sections(facts, _result(edition)),
        Section("claims", "claims", "What each kind of observer can learn from such a run", claims_part(facts)),
        Section("refusals", "refused", "Not proven, and why", refusals_part(facts)),
        Section(
            "edition",
            "left out",
            "What is left out, and why",
            [paragraph(left_out)],
        ),
        *closing_sections(facts),
    ]
    sections.append(Section("glossary", "glossary", "Terms on this page", glossary(facts.glossary, sections)))
    whole = "own.json" if edition.reader == OWNER else "participants.json, where bootstrap wrote it,"
    closing = f"Numbers are rounded to four digits; {whole} holds them in full. Users are counted from 0."
    return document(f"{protocol}, {n} users: {_HEADING.lower()}", _HEADING, opening, sections, closing)


def _result(edition: Edition) -> list[Any]:
    values = _listed(edition.estimate)
    errors: list[float | None] = [*_listed(edition.standard_error)]
    errors = errors if len(errors) == len(values) else [*errors, None][:1] * len(values)
    if len(values) == 1:
        rows = [
            (with_small("estimate", "what everybody learned"), number(values[0])),
            (with_small("standard error", "how far off such an estimate is, as a rule"), number(errors[0])),
        ]
        parts = [table(("", ""), rows, numbers=(1,))]
    elif values:
        shown = list(zip(range(_ROWS_MAX), map(number, values), map(number, errors), strict=False))
        parts = [table(("place", "estimate", "standard error"), shown, numbers=(0, 1, 2))]
    else:
        parts = [paragraph("Nothing is published: each user has its own result.")]
    if edition.public_scores is not None:
        parts.append(table(("", ""), public_rows(edition.public_scores), numbers=(1,)))
    if edition.missing:
        parts.append(paragraph(f"Bootstrap put out user {users(sorted(edition.missing))}: no answer came any more."))
    return parts


def _listed(value: Number) -> list[float]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _facts(edition: Edition) -> PageFacts:
    """Return the facts of the whole page, as far as participants may read them."""
    return PageFacts(
        run_id=edition.run_id,
        protocol=edition.run.spec.run.protocol,
        nodes=edition.run.n,
        delta=edition.delta,
        verified="complete",  # nothing here rests on records
        claims=edition.claims,
        refusals=edition.refusals,
        conditioning=Conditioning.A_PRIORI,
        epsilon=None,
        mu=None,
        coalition=None,
        distances=None,
        no_distances="",
        curves=[],
        outcome=None,
        unread="",
        setting={},
        spec_text="",
        reader=edition.reader,
        budget=edition.budget,
        started=edition.started,
        about=edition.about,
        proof=edition.proof,
        advice=edition.advice,
        glossary=edition.glossary,
    )
