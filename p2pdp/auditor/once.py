"""Check over all ledgers that what may be there once is there once.

Each token is at each step with one user, each report is passed on once by whoever held it, and each user sends each
other a value once for each round or activation, and the curator each of its values once. That holds even where the
ledger of the one who doubled something is not at hand.

What was sent to a peer that bootstrap excluded may be sent once more to somebody else, as the protocol says, and what
came from one after its receiver had been told of that was refused. Neither counts.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Final, NamedTuple

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import LOST, OUT, SKELETON, Exclusion, MessageTable, MessageType, Value
from p2pdp.core.step import Message
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Contents, Record, packed_message, packed_type, public_message
from p2pdp.replay.findings import Finding

_OUT: Final = packed_type(OUT)
_AT_THE_END: Final = frozenset({SKELETON})  # pieces of one skeleton, handed in when all is over
_ONLY: Final = frozenset({LOST})  # an order that is given again for each receiver that is gone


class _Arrival(NamedTuple):
    sender: Peer
    receiver: Peer
    record: Record


def doubled(views: Mapping[Peer, Contents], table: MessageTable, excluded: Collection[Peer]) -> Iterator[Finding]:
    """Yield what one peer sent twice, and items with two holders of which one had it from a peer without a ledger.

    A peer whose ledger is at hand is blamed for what that says, and never on the word of others.
    """
    seen: dict[Hashable, _Arrival] = {}
    crossed: dict[int, tuple[int, _Arrival, _Arrival]] = {}  # item -> its lowest doubled step, and who sent it
    for arrival, kind, message in _arrivals(views, table, frozenset(excluded)):
        key = _key(kind, message, arrival)
        first = seen.setdefault(key, arrival)
        if first is arrival:
            continue
        if first.sender == arrival.sender:
            found = _blame(views, arrival, kind, message)
            if found is not None:
                yield found
            continue
        item, step = kind.named(kind.item, message), kind.named(kind.step, message)
        if item not in crossed or step < crossed[item][0]:
            crossed[item] = step, first, arrival
    for item, (step, *both) in sorted(crossed.items()):
        unknown = [one.sender for one in both if one.sender not in views]
        if unknown:
            holders = " and ".join(map(_of, both))
            yield Finding(unknown[0], None, f"item {item} is at step {step} with {holders}, and has one holder")


def _arrivals(
    views: Mapping[Peer, Contents], table: MessageTable, excluded: frozenset[Peer]
) -> Iterator[tuple[_Arrival, MessageType, Message]]:
    """Yield all that users and curator took which may come once."""
    kinds = {packed_type(one.name): one for one in table if _counts(one)}
    lengths = sorted({len(start) for start in kinds})
    for receiver, contents in views.items():
        if receiver == BOOTSTRAP or receiver in excluded:
            continue
        out: set[Peer] = set()
        for record in contents.records:
            if record.kind not in (RECEIVED, OWN):
                continue
            packed = packed_message(record)
            sender = record.body.sender if record.kind == RECEIVED else receiver
            if sender == BOOTSTRAP and packed.startswith(_OUT):
                out.add(Exclusion(*public_message(record).fields).peer)
            kind = next((kinds[packed[:length]] for length in lengths if packed[:length] in kinds), None)
            if kind is not None and sender not in out and sender != CURATOR:
                yield _Arrival(sender, receiver, record), kind, public_message(record)


def _counts(kind: MessageType) -> bool:
    if kind.name in _AT_THE_END or kind.name in _ONLY:
        return False
    return kind.custody or kind.value in (Value.ALWAYS, Value.MAYBE)


def _key(kind: MessageType, message: Message, arrival: _Arrival) -> Hashable:
    """Return what there may be one of."""
    if kind.before is not None:
        return "passed on", arrival.sender, kind.named(kind.before, message)
    if kind.custody:
        return "at", kind.named(kind.item, message), kind.named(kind.step, message)
    at = packed_message(arrival.record) if kind.step is None else kind.named(kind.step, message)
    return arrival.sender, arrival.receiver, kind.name, at


def _blame(views: Mapping[Peer, Contents], arrival: _Arrival, kind: MessageType, message: Message) -> Finding | None:
    """Name the record by which a peer sent something for the second time; None if its ledger has one such record."""
    where = "this run" if kind.step is None else f"step {kind.named(kind.step, message)}"
    what = f"sends {kind.name} for the second time in {where}"
    if arrival.sender not in views:
        return Finding(arrival.sender, None, f"{what}, as record {arrival.record.index} of {_of(arrival)} says")
    key, sent = _key(kind, message, arrival), []
    start = packed_type(kind.name)
    for record in views[arrival.sender].records:
        if record.kind == SENT and packed_message(record).startswith(start):
            one = _Arrival(arrival.sender, record.body.receiver, record)
            if _key(kind, public_message(record), one) == key:
                sent.append(record.index)
    return Finding(arrival.sender, sent[-1], what) if len(sent) > 1 else None


def _of(arrival: _Arrival) -> str:
    return f"user {arrival.receiver}" if is_user(arrival.receiver) else "the curator"
