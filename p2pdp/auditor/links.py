"""Compare ledgers with each other: messages, draws that two users share, meetings, and decisions on survivors.

The k-th message sent on a link must be the k-th received there, and two users who met in a round must both have it on
record. Two users who share a draw must have recorded the same of it, with the same digest of its key, and neither may
have recorded it twice. Bootstrap decides once whose values count, and signs it. A peer in `silent` has no ledger at
hand, or one that may end early: it need not have recorded what others sent to it or what it sent itself. A ledger that
has no record of a round contradicts no meeting in it.

Where two ledgers disagree about a link, vouchers (`crypto/vouchers.py`) tell who is wrong. A receiver has the sender's
voucher for each message on record, and a sender has the receiver's for what it acknowledged; when it closes its ledger
each signs the key with which anybody can check the vouchers that it gave. A voucher that fits convicts whoever gave it.
One that does not fit convicts nobody: its giver may have sent a false one, or its holder have altered it. Then it is
said that it cannot be decided. The roles are not believed against a user whose skeleton they could read before they
closed their own ledgers, since it holds the key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import SKELETON
from p2pdp.crypto.vouchers import KEY_BYTES, START, Stamp, digest_after, received_in
from p2pdp.ledger.records import (
    ARRIVED,
    CLOSED,
    MET,
    PAIRED,
    PUBLISHED,
    RECEIVED,
    SENT,
    Contents,
    Record,
    is_handed_in,
    packed_message,
    packed_type,
    public_message,
)
from p2pdp.protocols.decision import SURVIVORS, Survivors

# How such messages begin as they are packed; another spelling of one has no send to match, and is a problem.
_DECISION: Final = packed_type(SURVIVORS)

_SKELETON: Final = packed_type(SKELETON)

Found = tuple[Peer, int | None, str]  # owner of a ledger, index of a record if there is one, what is wrong with it

UNDECIDED: Final = "; whose ledger is wrong cannot be decided: no voucher proves it"


class _Vouchers:
    """The vouchers on record, and what they prove. `sealed`: skeletons that were handed in could be read by nobody."""

    def __init__(self, views: Mapping[Peer, Contents], *, sealed: bool) -> None:
        self._views = views
        closed = {peer: view.records[-1] for peer, view in views.items() if view.records}
        self._keys = {peer: last.body.voucher_key for peer, last in closed.items() if last.kind == CLOSED}
        self._read = set() if sealed or CURATOR not in views else _handed_in(views[CURATOR])

    def sent(self, sender: Peer, receiver: Peer, received: Sequence[Record]) -> bool:
        """Return whether the sender vouched for the last of these messages, and that it came after the others."""
        stamp = self._stamp(sender, receiver)
        return stamp is not None and stamp.fits(len(received), _digest(received), received[-1].body.voucher)

    def acknowledged(self, receiver: Peer, sender: Peer, count: int) -> bool:
        """Return whether the receiver vouched, to the sender, that it had so many of the sender's messages."""
        stamp, view = self._stamp(receiver, sender), self._views[sender]
        if stamp is None:
            return False
        digest, number = START, 0
        for record in view.records:
            if record.kind in ARRIVED and record.body.sender == receiver:
                digest, number = digest_after(digest, record.body.message, record.digest), number + 1
                if received_in(record.body.voucher) >= count and stamp.fits(number, digest, record.body.voucher):
                    return True
        last, name = view.records[-1], receiver.to_bytes(4, "big", signed=True)
        told = [one[4:] for one in last.body.acknowledged if one[:4] == name] if last.kind == CLOSED else []
        return any(received_in(voucher) >= count and stamp.fits(0, START, voucher) for voucher in told)

    def _stamp(self, giver: Peer, holder: Peer) -> Stamp | None:
        key = self._keys.get(giver, b"")
        return None if len(key) != KEY_BYTES or (holder < 0 and giver in self._read) else Stamp(key, holder)


def _handed_in(curator: Contents) -> set[Peer]:
    records = (record for record in curator.records if record.kind == RECEIVED)
    return {record.body.sender for record in records if packed_message(record).startswith(_SKELETON)}


def _digest(messages: Sequence[Record]) -> bytes:
    digest = START
    for record in messages:
        digest = digest_after(digest, record.body.message, record.digest)
    return digest


def link_problems(
    views: Mapping[Peer, Contents],
    silent: AbstractSet[Peer],
    excluded: AbstractSet[Peer],
    droppable: AbstractSet[str],
    *,
    sealed: bool = False,
) -> Iterator[Found]:
    """Yield messages that do not match, at the peer who is convicted if there is one, else where it shows.

    What is sent to or from an excluded peer need not have been received, nor what is of a `droppable` type.
    """
    vouchers = _Vouchers(views, sealed=sealed)
    received: dict[tuple[Peer, Peer], list[Record]] = defaultdict(list)
    sent: dict[tuple[Peer, Peer], list[Record]] = defaultdict(list)
    for peer, contents in views.items():
        for record in contents.records:
            if record.kind in ARRIVED and not is_handed_in(record):
                received[record.body.sender, peer].append(record)
            elif record.kind == SENT:
                sent[peer, record.body.receiver].append(record)
    for (sender, receiver), messages in received.items():
        link = sender, receiver
        yield from _match(sent.get(link, []), messages, link, vouchers, whole=sender not in silent)
    for (sender, receiver), messages in sent.items():
        if receiver not in silent and not {sender, receiver} & excluded:
            link = sender, receiver
            yield from _arrived(messages, len(received.get(link, [])), link, vouchers, droppable)


def _match(
    sent: Sequence[Record], received: Sequence[Record], link: tuple[Peer, Peer], vouchers: _Vouchers, *, whole: bool
) -> Iterator[Found]:
    sender, receiver = link
    for position, record in enumerate(received):
        origin = sent[position] if position < len(sent) else None
        if origin is None and not whole:
            return
        if origin is None or (origin.body.message, origin.digest) != (record.body.message, record.digest):
            proved = vouchers.sent(sender, receiver, received[: position + 1])
            if proved:
                where = None if origin is None else origin.index
                held = f"message {position + 1} to {_name(receiver)}, who holds this peer's own voucher for it"
                yield sender, where, f"does not have {held}" if origin is None else f"stands in place of {held}"
            elif origin is None:
                yield receiver, record.index, f"receives what its sender's ledger does not send{UNDECIDED}"
            else:
                yield receiver, record.index, f"is not what record {origin.index} of its sender sent{UNDECIDED}"
            return


def _arrived(
    sent: Sequence[Record], arrived: int, link: tuple[Peer, Peer], vouchers: _Vouchers, droppable: AbstractSet[str]
) -> Iterator[Found]:
    sender, receiver = link
    for count, record in enumerate(sent[arrived:], arrived + 1):
        if public_message(record).type not in droppable:
            if vouchers.acknowledged(receiver, sender, count):
                yield receiver, None, f"does not have message {count} of {_name(sender)}, which it acknowledged"
            else:
                yield sender, record.index, f"sends what was never received{UNDECIDED}"
            return


def _name(peer: Peer) -> str:
    return f"user {peer}" if is_user(peer) else str(peer_name(peer))


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


def pair_problems(views: Mapping[Peer, Contents], silent: AbstractSet[Peer]) -> Iterator[Found]:
    """Yield draws that two users share and that only one of them recorded, or both in different ways.

    A user in `silent` need not have recorded what the other did.
    """
    drawn: dict[Peer, dict[tuple[Peer, int], Record]] = {}
    for user in filter(is_user, views):
        mine = drawn[user] = {}
        for record in views[user].records:
            if record.kind == PAIRED:
                place = record.body.peer, record.body.number
                if place in mine or record.body.peer == user:
                    yield user, record.index, "uses a draw with a peer that was used before, or is its own peer"
                mine[place] = record
    for user, mine in drawn.items():
        for (peer, number), record in mine.items():
            other = drawn.get(peer, {}).get((user, number))
            if other is None:
                if peer in views and peer not in silent:
                    yield user, record.index, f"shares a draw with user {peer}, whose ledger does not have it"
            elif (other.body.terms, other.digest) != (record.body.terms, record.digest):
                yield user, record.index, f"shares a draw with user {peer}, whose ledger has another"


def decision_problems(views: Mapping[Peer, Contents], is_signed: Callable[[Survivors], bool]) -> Iterator[Found]:
    """Yield decisions on survivors that bootstrap did not sign, or that are not the one that it published.

    Where bootstrap's ledger is not at hand, all that others were told must be the same.
    """
    first: bytes | None = None
    published = 0
    for peer in sorted(views, key=lambda peer: (peer != BOOTSTRAP, peer)):
        for record in views[peer].records:
            if not _tells_decision(peer, record):
                continue
            told = packed_message(record)
            published += record.kind == PUBLISHED
            if first is None:
                first = told
                if not is_signed(Survivors(*public_message(record).fields)):
                    yield peer, record.index, "the decision on survivors is not signed by bootstrap"
            elif told != first or published > 1:
                yield peer, record.index, "is another decision on survivors than the first"


def _tells_decision(peer: Peer, record: Record) -> bool:
    if peer == BOOTSTRAP:
        told = record.kind in (SENT, PUBLISHED)
    else:  # what others say of a decision is refused
        told = record.kind == RECEIVED and record.body.sender == BOOTSTRAP
    return told and packed_message(record).startswith(_DECISION)
