"""What a finished run computed, read from its ledgers: estimate, truth, baselines.

Each family of protocols has its own way of telling that; which one it is follows from the run's plan, the most
particular kind first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.assembly import averages, descents, gossip_descents, relayed, sums
from p2pdp.assembly.found import Number, Outcome, difference
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.messages import GO
from p2pdp.ledger.messages import public_message, whole_message
from p2pdp.ledger.records import PUBLISHED, RECEIVED, SENT, Contents, Record, read, whole_length
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.gossip_sgd import GossipSgdPlan
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.protocols.walk_sgd import SgdPlan
from p2pdp.protocols.walking import WalkPlan

Rows = Callable[[Peer], Any]


def _as_published(run: RunPlan, found: Outcome) -> Estimate:
    return run.protocol.estimate(run.plan, found.published, found.contributions)


def _difference(_run: RunPlan, _found: Outcome, estimate: Number, truth: Number) -> Number:
    return difference(estimate, truth)


@dataclass(frozen=True)
class Way:
    """`gather` adds to an outcome what a family tells of it; the others tell what follows from that."""

    gather: Callable[[RunPlan, Mapping[Peer, Contents], Outcome], None]
    truth_of: Callable[[RunPlan, Outcome, Rows], Number]
    estimate_of: Callable[[RunPlan, Outcome], Estimate] = _as_published
    error_of: Callable[[RunPlan, Outcome, Number, Number], Number] = _difference


_WAYS: Final[tuple[tuple[type, Way], ...]] = (
    (ShufflePlan, Way(relayed.gather, relayed.truth_of)),
    (
        GossipSgdPlan,
        Way(gossip_descents.gather, gossip_descents.truth_of, gossip_descents.estimate_of, averages.error_of),
    ),
    (AveragingPlan, Way(averages.gather, averages.truth_of, averages.estimate_of, averages.error_of)),
    (SgdPlan, Way(descents.gather, descents.truth_of)),
    (WalkPlan, Way(sums.gather, sums.truth_of, sums.estimate_of)),
)


def _way(run: RunPlan) -> Way:
    return next(way for kind, way in _WAYS if isinstance(run.plan, kind))


def outcome(run: RunPlan, views: Mapping[Peer, bytes], excluded: Sequence[Peer]) -> Outcome:
    """Reads all ledgers of a run."""
    found = Outcome(excluded=excluded)
    begun = {peer: read(data) for peer, data in views.items() if whole_length(data)}
    for contents in begun.values():
        found.messages += sum(record.kind == SENT for record in contents.records)
    if CURATOR in begun:
        _published(begun[CURATOR].records, found)
    _way(run).gather(run, begun, found)
    return found


def _published(records: Sequence[Record], found: Outcome) -> None:
    now_s = 0.0
    for record in records:
        if record.kind == RECEIVED:
            now_s = record.body[0]
            if public_message(record).type == GO:
                found.go_s = now_s
        elif record.kind == PUBLISHED:
            found.published = whole_message(record).value
            found.published_s = now_s
            found.over = True


def estimate_of(run: RunPlan, found: Outcome) -> Estimate:
    """The estimate of the spec's task."""
    return _way(run).estimate_of(run, found)


def truth_of(run: RunPlan, found: Outcome, rows: Rows) -> Number:
    """The estimate that the same visits, exchanges or reports would have given without noise and randomization."""
    return _way(run).truth_of(run, found, rows)


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    return _way(run).error_of(run, found, estimate, truth)


def baselines(
    run: RunPlan, found: Outcome, estimate: Estimate, sensitivity: float | None, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Standard errors of the same task under local DP, and with a trusted curator, at the same privacy."""
    if isinstance(run.plan, ShufflePlan):
        return relayed.baselines_of(run, found, estimate.value, epsilon, delta)
    return sums.baselines_of(run, found, estimate, sensitivity, epsilon, delta)
