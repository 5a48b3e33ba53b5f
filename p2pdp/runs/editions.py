"""The participants' edition of a run, by the rule of `report/participants.py`: how it is made, and where it is written.

It is made of the plan and of what the curator published, never of users' ledgers. Bootstrap leaves it beside its
results; of a local run `p2pdp report` makes it from the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import estimate_of
from p2pdp.auditor.verify import excluded_in, verify
from p2pdp.core.endings import why_stopped
from p2pdp.core.errors import P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, peer_name
from p2pdp.files.folder import (
    PARTICIPANTS_FILE,
    PARTICIPANTS_PAGE,
    RESULT_FILE,
    read_document,
    read_evidence,
    to_json,
    write_text,
)
from p2pdp.files.pages import page_file
from p2pdp.files.skeletons import handed_in_skeletons
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.learning import public_scores
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.published import stopped_in
from p2pdp.report.participants import Edition, page, sayable
from p2pdp.report.result import Circumstances
from p2pdp.runs.advice import ASKED_FOR, advice_on
from p2pdp.runs.audit import proof_of, signed_graph
from p2pdp.runs.comparing import published_only
from p2pdp.runs.costing import signed_plan
from p2pdp.runs.in_order import first_problem
from p2pdp.runs.outlook import in_advance
from p2pdp.runs.pages import about, glossary, made_up, on_graph


def write_participants_page(place: Path, out: Path | None) -> Path:
    """Make the edition from a run's folder, and write the page, by default into the folder; return the file."""
    file = page_file(place, out, PARTICIPANTS_PAGE)
    evidence = read_evidence(place, sealed_too=False)
    if dict(evidence.roster.facts)["sampler"] == "seeded" and not made_up(evidence.spec):
        raise Refused(
            "this simulation ran on real data, and its digests follow from its seed: with the estimate they would tell "
            "the result without noise; only the auditor's edition can be made (--for auditor)"
        )
    result = _result(place)
    started = result.get("started")  # a simulation has no time of day
    try:
        made = edition_in(evidence, started if isinstance(started, str) else None)
    except RunFailed:
        if result.get("estimate") is None:
            raise
        raise VerificationFailed(f"the curator's ledger ends before what {RESULT_FILE} says was published") from None
    write_text(file, page(made))
    return file


def _result(place: Path) -> Mapping[str, Any]:
    try:
        return read_document(place, RESULT_FILE)
    except P2pdpError:
        return {}


def edition_in(evidence: Evidence, started: str | None) -> Edition:
    """Return the edition of a run whose ledgers are at hand and in order, of bootstrap and curator at least."""
    if evidence.own is not None:
        raise UsageError("this is the folder of one node: --for owner makes its owner's report")
    for role in (BOOTSTRAP, CURATOR):
        if not evidence.begins(role):
            raise VerificationFailed(f"the ledger of {peer_name(role)} is missing, of which this edition is made")
    if evidence.contents(CURATOR).skeleton:
        raise Refused("there are no values, and so not what came out; name the run's folder, and no exported file")
    checked = verify(evidence)
    if checked.verified is None and not checked.only_missing:
        raise VerificationFailed(first_problem(checked))
    roster = evidence.roster
    around = Circumstances(
        run_id=roster.run_id.hex(),
        seeded=dict(roster.facts)["sampler"] == "seeded",
        seed=None,
        started=started,
        bytes=None,
        missing=excluded_in(evidence.contents(BOOTSTRAP)),
        faults={},
        private_kept=False,
    )
    run = signed_plan(evidence.spec, dict(roster.facts))
    run = run if run.graph is not None else on_graph(run, signed_graph(roster, checked.views))
    return edition_of(run, evidence, around)


def edition_of(run: RunPlan, evidence: Evidence, around: Circumstances, *, failed: bool = False) -> Edition:
    """Return the edition of a run; `failed`: its ledgers did not pass verification."""
    if not published_only(run, evidence).over:
        why = stopped_in(evidence.contents(BOOTSTRAP))
        yet = "nothing was published yet; this edition tells what came out"
        raise RunFailed(yet if why is None else why_stopped(why.reason))
    readable = run.spec.audit.key is None and bool(handed_in_skeletons(evidence.contents(CURATOR)))
    estimate = estimate_of(run, published_only(run, evidence))
    made = replace(edition_in_advance(run, around, estimate, readable=readable), failed=failed)
    return made if around.seeded else replace(made, proof=proof_of(evidence, {}))  # digests would tell the seed


def edition_in_advance(run: RunPlan, around: Circumstances, estimate: Estimate, *, readable: bool) -> Edition:
    """Return the edition for this estimate; `readable`: some user handed in a skeleton that the curator can read."""
    result = in_advance(run)
    claims, refusals = sayable(run, result.claims, result.refusals, around.missing, readable=readable)
    return Edition(
        run_id=around.run_id,
        seeded=around.seeded,
        started=around.started,
        run=run,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        missing=around.missing,
        public_scores=_public_scores(run, estimate),
        claims=claims,
        refusals=refusals,
        about=about(run.spec, run.n, run.dimensions),
        advice=advice_on(run, one_value=made_up(run.spec) or run.by_record, patience=ASKED_FOR),
        glossary=glossary(),
    )


def _public_scores(run: RunPlan, estimate: Estimate) -> dict[str, float | None] | None:
    """Return the scores of the published model on public rows, where there are both: they follow from what all know."""
    if run.public is None or not run.plan.learns or not isinstance(estimate.value, list):
        return None
    return public_scores(run.plan.descent.objective, run.public, np.array(estimate.value))


def save_edition(folder: Path, edition: Edition) -> None:
    write_text(folder / PARTICIPANTS_FILE, to_json(edition.to_json()) + "\n")
    write_text(folder / PARTICIPANTS_PAGE, page(edition))
