"""The outcome of a finished run, from its ledgers and by its protocol's analysis: estimate, truth and baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from p2pdp.assembly.curves import Curve
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import GO
from p2pdp.core.values import Source
from p2pdp.ledger.records import PUBLISHED, RECEIVED, SENT, Record, public_message, whole_message
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.wire.padding import frame_size

Rows = Callable[[Peer], Any]


Number = float | list[float] | None
Path = list[tuple[Peer, int]]  # of a token: at each step the user, and how often it had contributed before


@dataclass
class Outcome:
    """The computed values. `counted` maps users to how often each of their values (reports: visits) is published.

    `messages` counts what users send each other by the protocol, each once, however often its frame was sent. What
    goes to bootstrap or the curator, or comes from there, does not count; nor does a token that stays where it is.
    Of gossip: `finals` are the users' own results, `rows` what they are made of (`gossip/analysis/outcome.py`) and
    `variances` the covariance of their noise, `shares` what the mean of those published is made of, and
    `deviation` that of its noise, or of a user's own result if none is; None where that was not worked out.
    """

    published: Any = None
    counted: dict[Peer, dict[int, int]] = field(default_factory=dict)
    messages: int = 0
    go_s: float = 0.0
    published_s: float = 0.0
    over: bool = False  # the curator has published, be it nothing
    finals: dict[Peer, Any] = field(default_factory=dict)
    rows: Any = None
    variances: Any = None
    shares: Any = None
    deviation: float | None = None
    forms: list[list[dict[Source, float]]] | None = None  # by result, what each value in it is made of (`linear.py`)
    paths: list[Path] | None = None  # of descent; None where they cannot be told
    course: Any = None  # of learning by gossip (`outcome_descent.py`); None where it cannot be told
    truth: Number = None  # where it is known already
    curve: Curve | None = None  # of learning, where public rows are at hand
    traffic: dict[str, Any] | None = None  # of shuffling: what each user sent (`shuffle/analysis/outcome.py`)
    excluded: Sequence[Peer] = ()  # who was gone round
    survivors: list[Peer] | None = None  # whose values are in the result, where that is decided
    alone: bool = False  # nothing is known but what was published

    @property
    def contributions(self) -> int:
        return sum(sum(values.values()) for values in self.counted.values())


def outcome(run: RunPlan, recorded: Recorded, excluded: Sequence[Peer]) -> Outcome:
    """Read all ledgers of a run."""
    found = Outcome(excluded=excluded)
    for peer, contents in recorded.views.items():
        if is_user(peer):
            sent = (record.body.receiver for record in contents.records if record.kind == SENT)
            found.messages += sum(is_user(receiver) and receiver != peer for receiver in sent)
    if CURATOR in recorded.views:
        _published(recorded.views[CURATOR].records, found)
    run.protocol.analysis().gather(run, recorded, found)
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


def counted_in(run: RunPlan, found: Outcome) -> int:
    """Return how many contributions are in the result; how many rows where the unit is a record, 0 if not known."""
    records = run.plan.records
    if records is None:
        return found.contributions
    if records.rows is None or found.alone:
        return 0
    return sum(records.rows[user] * sum(values.values()) for user, values in found.counted.items())


def estimate_of(run: RunPlan, found: Outcome) -> Estimate:
    """Return the estimate of the spec's task."""
    return run.protocol.analysis().estimate(run, found)


def truth_of(run: RunPlan, found: Outcome, rows: Rows) -> Number:
    """Return the estimate that the same visits, exchanges or reports would have given without noise."""
    return run.protocol.analysis().truth(run, found, rows)


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    return run.protocol.analysis().error(run, found, estimate, truth)


def baselines(
    run: RunPlan, found: Outcome, estimate: Estimate, sensitivity: float | None, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Return standard errors of the same task under local DP, and with a trusted curator, at the same privacy."""
    return run.protocol.analysis().baselines(run, found, estimate, sensitivity, epsilon, delta)


def difference(estimate: Number, truth: Number) -> Number:
    if estimate is None or truth is None:
        return None
    if isinstance(estimate, list) and isinstance(truth, list):
        return [mine - theirs for mine, theirs in zip(estimate, truth, strict=True)]
    assert not isinstance(estimate, list)
    assert not isinstance(truth, list)
    return estimate - truth


ENVELOPE_BYTES: Final = 120
"""Of a frame, at most, around its content."""
_AROUND_VECTOR_BYTES: Final = 80  # beside the envelope: salt, kind of message and value


def numbers_frame(count: int, number_bytes: int = 8) -> int:
    """Return the size of a frame that carries so many numbers."""
    return frame_size(ENVELOPE_BYTES + (_AROUND_VECTOR_BYTES if count > 1 else 0) + count * number_bytes)


def numbers_in(plan: Any) -> int:
    """Return how many numbers a value of a run has."""
    return plan.shape[0] if plan.shape else 1
