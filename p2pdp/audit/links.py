"""Whether both ends of each link tell the same story: the k-th message sent there is the k-th received.

Who is `silent` has no ledger at hand, or one that may end early: it need not have recorded what others sent to
it, and what it sent need not stand in its ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.core.messages import HEAD, SKELETON
from p2pdp.ledger.messages import packed_message, packed_type, public_message
from p2pdp.ledger.records import RECEIVED, SENT, Contents, Record

# How such messages begin as they are packed; another spelling of one has no send to match, and is a problem.
_HANDED_IN: Final = tuple(packed_type(kind) for kind in (HEAD, SKELETON))

Found = tuple[Peer, int, str]  # whose record, which one, what is wrong with it


def link_problems(
    views: Mapping[Peer, Contents],
    silent: AbstractSet[Peer],
    excluded: AbstractSet[Peer],
    droppable: AbstractSet[str],
) -> Iterator[Found]:
    """Yield what does not match.

    To and from somebody who is out, what was sent need not have been received, nor what is `droppable` anywhere.
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
    """Heads and skeletons are handed in after the sender's ledger is closed, so no send stands there."""
    return packed_message(record).startswith(_HANDED_IN)
