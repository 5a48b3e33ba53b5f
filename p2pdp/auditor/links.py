"""Compare the ledgers of both ends of each link: messages, and meetings on a graph that changes.

The k-th message sent on a link must be the k-th received there, and two users who met in a round must both have it on
record. A peer in `silent` has no ledger at hand, or one that may end early: it need not have recorded what others sent
to it or what it sent itself. A ledger that has no record of a round contradicts no meeting in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import HEAD, SKELETON
from p2pdp.ledger.records import MET, RECEIVED, SENT, Contents, Record, packed_message, packed_type, public_message

# How such messages begin as they are packed; another spelling of one has no send to match, and is a problem.
_HANDED_IN: Final = tuple(packed_type(kind) for kind in (HEAD, SKELETON))

Found = tuple[Peer, int, str]  # owner of a ledger, index of a record, what is wrong with it


def link_problems(
    views: Mapping[Peer, Contents],
    silent: AbstractSet[Peer],
    excluded: AbstractSet[Peer],
    droppable: AbstractSet[str],
) -> Iterator[Found]:
    """Yield messages that do not match.

    What is sent to or from an excluded peer need not have been received, nor what is of a `droppable` type.
    """
    received: dict[tuple[Peer, Peer], list[Record]] = defaultdict(list)
    sent: dict[tuple[Peer, Peer], list[Record]] = defaultdict(list)
    for peer, contents in views.items():
        for record in contents.records:
            if record.kind == RECEIVED and not _after_close(record):
                received[record.body.sender, peer].append(record)
            elif record.kind == SENT:
                sent[peer, record.body.receiver].append(record)
    for (sender, receiver), messages in received.items():
        yield from _match(sent.get((sender, receiver), []), messages, receiver, whole=sender not in silent)
    for (sender, receiver), messages in sent.items():
        if receiver not in silent and not {sender, receiver} & excluded:
            yield from _arrived(messages, len(received.get((sender, receiver), [])), sender, droppable)


def _match(sent: Sequence[Record], received: Sequence[Record], receiver: Peer, *, whole: bool) -> Iterator[Found]:
    for position, record in enumerate(received):
        if position >= len(sent):
            if whole:
                yield receiver, record.index, "receives what its sender's ledger does not send"
            return
        origin = sent[position]
        if origin.body.message != record.body.message or origin.digest != record.digest:
            yield receiver, record.index, f"is not what record {origin.index} of its sender sent"
            return


def _arrived(sent: Sequence[Record], arrived: int, sender: Peer, droppable: AbstractSet[str]) -> Iterator[Found]:
    for record in sent[arrived:]:
        if public_message(record).type not in droppable:
            yield sender, record.index, "sends what was never received"
            return


def _after_close(record: Record) -> bool:
    """Return whether a message was handed in after its sender's ledger was closed, and so is not recorded there."""
    return packed_message(record).startswith(_HANDED_IN)


def meeting_problems(views: Mapping[Peer, Contents]) -> Iterator[Found]:
    """Yield meetings that only one of the two recorded, where both recorded the round."""
    meetings: dict[Peer, dict[int, tuple[Record, frozenset[Peer]]]] = {}
    for user in filter(is_user, views):
        rounds = meetings[user] = {}
        for record in views[user].records:
            if record.kind == MET:
                number, peers = record.body
                if number in rounds or user in peers:
                    yield user, record.index, "is a meeting that the coins of pairs cannot give"
                rounds[number] = record, frozenset(peers)
    for user, rounds in meetings.items():
        for number, (record, peers) in rounds.items():
            for peer in peers:
                other = meetings.get(peer, {}).get(number)
                if other is not None and user not in other[1]:
                    yield user, record.index, f"meets user {peer}, whose ledger does not meet it in that round"
