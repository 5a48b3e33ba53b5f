"""What the curator received and published, as linear forms: from its own ledger, or from what was sent to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import COMMON, FINISHED, OPENED_REPORT, REPORT, TOTAL, OpenedReport
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm
from p2pdp.ledger.messages import public_message
from p2pdp.ledger.records import OWN, PUBLISHED, RECEIVED, Contents, Record
from p2pdp.protocols.run_plan import RunPlan

Forms = tuple[LinearForm, ...]
FormOf = Callable[[Peer, Peer, int, Record], LinearForm | tuple[Peer, Peer] | None]


def with_curator(
    run: RunPlan, contents: Contents, form_of: FormOf
) -> tuple[dict[Peer, int], list[LinearForm], Forms | None]:
    """Return how many messages the curator had from whom, what it received, and what it published."""
    totals: list[LinearForm] = []
    published: Forms | None = None
    taken: dict[Peer, int] = {}
    first: dict[int, Any] = {}
    for record in contents.records:
        if record.kind == RECEIVED and is_user(record.body.sender):
            sender = record.body.sender
            number = taken.get(sender, 0)
            taken[sender] = number + 1
            message = public_message(record)
            if message.type in (TOTAL, FINISHED, REPORT):
                form = form_of(sender, CURATOR, number, record)
                assert not isinstance(form, tuple)  # everybody has ended: none is waited for
                if form is not None:
                    totals.append(form)
                if message.type != REPORT:
                    first.setdefault(_of(message, sender), form)
        elif record.kind == OWN and public_message(record).type == OPENED_REPORT and totals:
            first.setdefault(OpenedReport(*public_message(record).fields).name, totals[-1])
        elif record.kind == PUBLISHED:
            early = not run.finishes_one_by_one and len(first) != len(run.plan.starts)
            if published is not None or early:
                raise VerificationFailed(f"node curator, record {record.index}: is not published by the protocol here")
            published = _publish(run, first)
    return taken, totals, published


def without_curator(run: RunPlan, outbox: Mapping[tuple[Peer, Peer], Sequence[Message]]) -> Forms | None:
    """Return what was published, from the totals, or the users' results, that were sent to the curator."""
    first: dict[int, Any] = {}
    ended: set[int] = set()  # items whose totals are there, or users who have finished
    for (sender, to), messages in outbox.items():
        for message in messages:
            if to == CURATOR and message.type in (TOTAL, FINISHED, REPORT):
                first.setdefault(_of(message, sender), message.value)
            if to == CURATOR and message.type in (TOTAL, FINISHED):
                ended.add(_of(message, sender))
    if len(ended) == (run.n if run.finishes_one_by_one else len(run.plan.starts)):
        return _publish(run, first)
    return None


def _of(message: Message, sender: Peer) -> int:
    """Return the item that a message to the curator names; of one that names none, its sender."""
    item: int | None = COMMON.item_of(message)
    return sender if item is None else item


def _publish(run: RunPlan, first: dict[int, Any]) -> tuple[LinearForm, ...]:
    """Totals become one result; the results of users who finish one by one are published side by side."""
    told: Sequence[LinearForm] = [first[item] for item in sorted(first) if first[item] is not None]
    return tuple(told) if run.finishes_one_by_one else (run.protocol.publish(run.plan, told),)
