"""What a finished run computed, read from its ledgers: estimate, truth, baselines, as its protocol's analysis says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2pdp.assembly.found import Number, Outcome
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.messages import GO
from p2pdp.ledger.messages import public_message, whole_message
from p2pdp.ledger.records import PUBLISHED, RECEIVED, SENT, Record, read, whole_length
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan

Rows = Callable[[Peer], Any]


def outcome(run: RunPlan, views: Mapping[Peer, bytes], excluded: Sequence[Peer]) -> Outcome:
    """Reads all ledgers of a run."""
    found = Outcome(excluded=excluded)
    begun = {peer: read(data) for peer, data in views.items() if whole_length(data)}
    for contents in begun.values():
        found.messages += sum(record.kind == SENT for record in contents.records)
    if CURATOR in begun:
        _published(begun[CURATOR].records, found)
    run.protocol.analysis().gather(run, begun, found)
    return found


def _published(records: Sequence[Record], found: Outcome) -> None:
    now_s = 0.0
    for record in records:
        if record.kind == RECEIVED:
            now_s = record.body.now_s
            if public_message(record).type == GO:
                found.go_s = now_s
        elif record.kind == PUBLISHED:
            found.published = whole_message(record).value
            found.published_s = now_s
            found.over = True


def estimate_of(run: RunPlan, found: Outcome) -> Estimate:
    """The estimate of the spec's task."""
    return run.protocol.analysis().estimate(run, found)


def truth_of(run: RunPlan, found: Outcome, rows: Rows) -> Number:
    """The estimate that the same visits, exchanges or reports would have given without noise and randomization."""
    return run.protocol.analysis().truth(run, found, rows)


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    return run.protocol.analysis().error(run, found, estimate, truth)


def baselines(
    run: RunPlan, found: Outcome, estimate: Estimate, sensitivity: float | None, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Standard errors of the same task under local DP, and with a trusted curator, at the same privacy."""
    return run.protocol.analysis().baselines(run, found, estimate, sensitivity, epsilon, delta)
