"""The published results as linear forms, from the curator's ledger or from what users sent to it.

The collector of a protocol with a decision (`protocols/decision.py`) is replayed with forms and shares in place of
numbers and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from p2pdp.core.endings import STOPPED, Stopped
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import (
    COMMON,
    FINISHED,
    OPENED_REPORT,
    OUT,
    REPORT,
    TOTAL,
    Exclusion,
    OpenedReport,
)
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm
from p2pdp.ledger.records import (
    ARRIVED,
    OWN,
    PUBLISHED,
    RECEIVED,
    REFUSED,
    Contents,
    Record,
    is_handed_in,
    public_message,
)
from p2pdp.protocols.decision import SURVIVORS, Collector, Survivors
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.findings import not_followed

Forms = tuple[LinearForm, ...]


class Link(NamedTuple):
    """A link that has to go on before what is asked for is known."""

    sender: Peer
    receiver: Peer


FormOf = Callable[[Peer, Peer, int, Record], Any]  # a message's form or shares, the link to wait for, or None


def tells(value: Any) -> TypeGuard[LinearForm]:
    """Return whether a value is a form: what stands for no value is bytes in a replay too, parts of secrets are tuples.

    Forms are told from all else by what they are not, since tests replay with numbers.
    """
    return value is not None and not isinstance(value, bytes | tuple | list)


def with_curator(
    run: RunPlan, contents: Contents, form_of: FormOf
) -> tuple[dict[Peer, int], list[LinearForm], Forms | None]:
    """Return how many messages the curator had from each user, the forms in them, and those that it published."""
    totals: list[LinearForm] = []
    published: Forms | None = None
    taken: dict[Peer, int] = {}
    first: dict[int, Any] = {}
    for record in contents.records:
        if record.kind in ARRIVED and is_user(record.body.sender) and not is_handed_in(record):
            sender = record.body.sender
            number = taken.get(sender, 0)
            taken[sender] = number + 1
            if record.kind == REFUSED:
                continue
            message = public_message(record)
            if message.type in (TOTAL, FINISHED, REPORT):
                form = form_of(sender, CURATOR, number, record)
                assert not isinstance(form, Link)  # everybody has ended: none is waited for
                if form is not None:
                    totals.append(form)
                if message.type == run.handed_in:  # one that the curator refused names no item here
                    first.setdefault(_of(message, sender), form)
        elif record.kind == OWN and public_message(record).type == OPENED_REPORT and totals:
            first.setdefault(OpenedReport(*public_message(record).fields).name, totals[-1])
        elif record.kind == PUBLISHED:
            early = not run.completes_per_user and len(first) != len(run.plan.starts)
            if published is not None or early:
                raise not_followed(CURATOR, record.index, "is not published by the protocol here")
            published = _publish(run, first)
    return taken, totals, published


def without_curator(run: RunPlan, outbox: Mapping[tuple[Peer, Peer], Sequence[Message]]) -> Forms | None:
    """Return what was published, from the totals or results that users sent to the curator."""
    first: dict[int, Any] = {}
    ended: set[int] = set()  # items whose totals are there, or users who have finished
    for (sender, to), messages in outbox.items():
        for message in messages:
            if to == CURATOR and message.type in (run.handed_in, REPORT):
                first.setdefault(_of(message, sender), message.value)
            if to == CURATOR and message.type == run.handed_in:
                ended.add(_of(message, sender))
    if len(ended) == (run.n if run.completes_per_user else len(run.plan.starts)):
        return _publish(run, first)
    return None


def with_collector(
    run: RunPlan, collector: Collector, contents: Contents, form_of: FormOf
) -> tuple[dict[Peer, int], list[LinearForm], Forms | None]:
    """Return the same of a curator that has a collector."""
    totals: list[LinearForm] = []
    published: Forms | None = None
    taken: dict[Peer, int] = {}
    for record in contents.records:
        sender = record.body.sender if record.kind in ARRIVED else CURATOR
        if sender == BOOTSTRAP:
            _heard(collector, public_message(record))
        elif is_user(sender) and not is_handed_in(record):
            number = taken.get(sender, 0)
            taken[sender] = number + 1
            if record.kind == REFUSED:
                continue
            message = public_message(record)
            value = form_of(sender, CURATOR, number, record)
            collector.take(sender, Message(message.type, message.fields, value))
            totals += [value] if tells(value) else []
        elif record.kind == PUBLISHED:
            if published is not None or not collector.complete:
                raise not_followed(CURATOR, record.index, "is not published by the protocol here")
            published = _collected(run, collector)
    return taken, totals, published


def _heard(collector: Collector, message: Message) -> None:
    """Pass on what bootstrap said to the curator."""
    if message.type == OUT:
        collector.excluded(Exclusion(*message.fields).peer)
    elif message.type == SURVIVORS:
        collector.decided(Survivors(*message.fields).absent)


def _collected(run: RunPlan, collector: Collector) -> Forms:
    return (run.protocol.publish(run.plan, [collector.result()]),)


def collected_by(
    run: RunPlan,
    collector: Collector,
    views: Mapping[Peer, Contents],
    outbox: Mapping[tuple[Peer, Peer], Sequence[Message]],
) -> Forms | None:
    """Return what a curator whose ledger is not at hand published, from what users sent it and the decision."""
    absent = next((found for view in views.values() if (found := absent_in(view)) is not None), None)
    if absent is None:
        return None
    for user in absent:
        collector.excluded(user)
    for sender in sorted(set(range(run.n)) - set(absent)):
        for message in outbox.get((sender, CURATOR), ()):
            collector.take(sender, message)
    return _collected(run, collector) if collector.decided(absent) is None and collector.complete else None


def survivors_in(view: Contents, n: int) -> list[Peer] | None:
    """Return whose values count, as bootstrap told the owner of this view; None where it told of no decision."""
    absent = absent_in(view)
    return None if absent is None else sorted(set(range(n)) - set(absent))


def absent_in(view: Contents) -> Sequence[Peer] | None:
    """Return who is absent from the result, as bootstrap told the owner of this view."""
    for record in view.records:
        if record.kind == RECEIVED and record.body.sender == BOOTSTRAP:
            message = public_message(record)
            if message.type == SURVIVORS:
                return Survivors(*message.fields).absent
    return None


def stopped_in(bootstrap: Contents) -> Stopped | None:
    """Return why bootstrap stopped the run, by its ledger; None if it did not."""
    for record in bootstrap.records:
        if record.kind == PUBLISHED:
            message = public_message(record)
            if message.type == STOPPED:
                return Stopped(*message.fields)
    return None


def _of(message: Message, sender: Peer) -> int:
    """Return the item that a message to the curator names; of one that names none, its sender."""
    item: int | None = COMMON.item_of(message)
    return sender if item is None else item


def _publish(run: RunPlan, first: dict[int, Any]) -> tuple[LinearForm, ...]:
    """Return one result of all totals; results of users who finish one by one are published side by side."""
    told: Sequence[LinearForm] = [first[item] for item in sorted(first) if first[item] is not None]
    return tuple(told) if run.completes_per_user else (run.protocol.publish(run.plan, told),)
