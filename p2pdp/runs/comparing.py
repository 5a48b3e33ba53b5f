"""Compare what the documents of a folder say with the ledgers that they were made from.

`result.json` and `audit.json` are plain files, which anybody can change; the estimate follows from what the curator's
ledger says that it published.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.auditor.verify import excluded_in
from p2pdp.core.errors import P2pdpError
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files.folder import AUDIT_FILE, RESULT_FILE, read_evidence
from p2pdp.ledger.records import PUBLISHED, whole_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.published import survivors_in

UNKNOWN: Final = object()  # where the curator's ledger is not at hand with its values
_SAME: Final = 1e-9


def published_only(run: RunPlan, evidence: Evidence) -> Outcome:
    """Return what the curator's ledger says: each total holds a contribution of every step, whoever made it.

    Where there was a decision, the survivors contributed.
    """
    found = outcome(run, evidence.recorded([CURATOR], run), [])
    found.survivors = survivors_in(evidence.contents(CURATOR), run.n)
    found.counted = {CURATOR: {0: run.plan.length if found.survivors is None else len(found.survivors)}}
    found.alone = run.by_record
    if found.survivors is not None:
        found.deviation = None  # what was published is made of cannot be told
    return found


def estimate_in(evidence: Evidence) -> Any:
    """Return the estimate that the curator's ledger leads to, or `UNKNOWN`."""
    try:
        if not evidence.begins(CURATOR) or evidence.contents(CURATOR).skeleton:
            return UNKNOWN
        run, curator = evidence.run, evidence.contents(CURATOR)
        published = [record for record in curator.records if record.kind == PUBLISHED]
        if not published or _counts_those_left(run, evidence):
            return UNKNOWN
        value = whole_message(published[-1]).value
        if value is None:
            return None
        estimate = run.protocol.estimate_alone(run.plan, value, survivors_in(curator, run.n)).value
    except P2pdpError:
        return UNKNOWN
    return UNKNOWN if estimate is None else estimate


def _counts_those_left(run: RunPlan, evidence: Evidence) -> bool:
    """Return whether an estimate counts the rows of users of whom the curator's ledger does not tell who they are."""
    if not run.by_record or run.collector() is not None:
        return False
    return not evidence.begins(BOOTSTRAP) or bool(excluded_in(evidence.contents(BOOTSTRAP)))


def differs(document: Mapping[str, Any], estimate: Any) -> bool:
    """Return whether the estimate of a result is another than the ledger's, if that is known."""
    return estimate is not UNKNOWN and not _same(document.get("estimate"), estimate)


def differences(folder: Path, result: Mapping[str, Any] | None, audit: Mapping[str, Any] | None) -> list[str]:
    """Return what result and audit of a folder say that its roster and its curator's ledger do not."""
    if result is None and audit is None:
        return []
    try:
        evidence = read_evidence(folder, sealed_too=False)
    except P2pdpError as error:
        return [str(error)]
    roster = evidence.roster
    facts = {"run_id": roster.run_id.hex(), "protocol": roster.protocol, "nodes": roster.n}
    found = [
        f"{name}: its {key} is not that of the roster"
        for name, document in ((RESULT_FILE, result), (AUDIT_FILE, audit))
        for key, value in facts.items()
        if document is not None and document.get(key) != value
    ]
    if result is not None and result.get("estimate") is not None and not evidence.begins(CURATOR):
        found.append(f"{RESULT_FILE}: the curator's ledger is not there, so nothing shows that its estimate is true")
    elif result is not None and differs(result, estimate_in(evidence)):
        found.append(f"{RESULT_FILE}: its estimate is not what the curator's ledger says")
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list | array) and isinstance(other, list | array):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
    return type(one) is type(other) and bool(one == other)
