"""The owner's edition: what taking part has cost one node, from the node's own folder, and what its budget has left.

The bounds are those that the node told its owner at the end (`own.json`): a priori, or from its own ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from p2pdp.auditor.claims import claim_of
from p2pdp.auditor.verify import verify
from p2pdp.core.claims import Claim, Conditioning, Observer, Refusal
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.folder import REPORT_FILE, read_document, read_evidence, write_text
from p2pdp.files.node_config import load_node_config
from p2pdp.files.pages import page_file
from p2pdp.node.budget import BudgetLedger
from p2pdp.node.folder import TOLD_FILE
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.page.facts import OWNER
from p2pdp.report.page.words import number
from p2pdp.report.participants import Edition, page
from p2pdp.runs.advice import ASKED_FOR, advice_on
from p2pdp.runs.audit import proof_of
from p2pdp.runs.budgeting import charge_name, data_names
from p2pdp.runs.costing import Cost, signed_plan
from p2pdp.runs.in_order import first_problem
from p2pdp.runs.pages import about, glossary

_TOLD: Final = "as the node told its owner when its part was over"


def write_owners_page(place: Path, out: Path | None, config: Path | None) -> Path:
    """Make the page of a node whose part is over, by default into its folder; `config` names the budget."""
    file = page_file(place, out, REPORT_FILE)
    write_text(file, page(owners_edition(place, config)), secret=True)
    return file


def owners_edition(place: Path, config: Path | None) -> Edition:
    """Return the edition from the folder of a node whose part is over."""
    try:
        told = read_document(place, TOLD_FILE)
    except UsageError:
        raise UsageError(f"{place}: is not the folder of a node whose part in a run is over") from None
    evidence = read_evidence(place)
    checked = verify(evidence)
    if checked.verified is None:
        raise VerificationFailed(first_problem(checked))
    run = signed_plan(evidence.spec, dict(evidence.roster.facts))
    try:
        claims, refusals = _bounds(run, [Cost.from_json(one) for one in told["spent"]])
        estimate, error = told["estimate"], told["standard_error"]
        missing = [int(told["user"])] if told["excluded"] else []
    except (KeyError, TypeError, ValueError):
        raise VerificationFailed(f"{place / TOLD_FILE}: is damaged") from None
    return Edition(
        run_id=evidence.roster.run_id.hex(),
        seeded=False,
        started=None,
        run=run,
        estimate=estimate,
        standard_error=error,
        missing=missing,
        claims=claims,
        refusals=refusals,
        about=about(run.spec, run.n, run.dimensions),
        proof=replace(proof_of(evidence, checked.views), audit="p2pdp views FILE"),
        advice=advice_on(run, one_value=False, patience=ASKED_FOR),
        glossary=glossary(),
        reader=OWNER,
        budget=None if config is None else budget_of(config, evidence.roster.run_id),
    )


def _bounds(run: RunPlan, costs: Sequence[Cost]) -> tuple[list[Claim], list[Refusal]]:
    claims, refusals = [], []
    for cost in costs:
        observer = Observer(cost.observer)
        if cost.method is None or cost.conditioning is None:
            refusals.append(Refusal(observer, "any", "no method gives a bound"))
            continue
        given = Conditioning(cost.conditioning)
        epsilon = cost.epsilon, None
        claims.append(
            claim_of(run.protected, observer, cost.method, given, cost.delta, None, (_TOLD,), epsilon=epsilon)
        )
    return claims, refusals


def budget_of(config_file: Path, run_id: bytes) -> str:
    """Say what the owner's budget allows, what all runs on the data were charged with, and what is left."""
    config = load_node_config(config_file)
    own = config.budget
    if own is None:
        return "This node's configuration has no [budget], so nothing is added up and no run is refused for the sum."
    ledger = BudgetLedger(own.ledger, own.unit)
    spent = ledger.spent(data_names(config.data)).epsilon_at(own.delta)
    included = "included" if ledger.holds(charge_name(run_id, config)) else "not included"
    left = max(0.0, own.epsilon - spent)
    return (
        f"All runs on this node's data together were charged with ε {number(spent)} at δ = {number(own.delta)}, this "
        f"run {included}. The owner allows ε {number(own.epsilon)}, so ε {number(left)} is left. A run that would "
        "exceed it is refused before it begins."
    )
