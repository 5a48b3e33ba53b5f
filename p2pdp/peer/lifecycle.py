"""The restart of a peer from stored records, up to running them again, and the end of a ledger.

A restart waits for its peers' numbers before it draws anything. It does not wait for those of whom it knows
that they left or will not be talked to again, since what they might prove is in its ledger already: after a
peer's head nothing more comes from it, and a closed ledger draws nothing. They are heard if they answer.

A ledger ends with its signature. Its head, and the skeleton where its owner agreed, are then handed to the curator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from p2pdp.core.endings import COMPLAINT
from p2pdp.core.events import Event, Received, Started, Woken
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import DONE, HEAD, OUT, SKELETON, Exclusion
from p2pdp.core.step import Message
from p2pdp.crypto.identity import sign_labelled
from p2pdp.crypto.vouchers import NO_VOUCHER
from p2pdp.ledger.bodies import Closed
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import (
    ARRIVED,
    CLOSED,
    EVENT_KINDS,
    HEAD_LABEL,
    OWN,
    RECEIVED,
    REFUSED,
    SALT_BYTES,
    SENT,
    STARTED,
    Record,
    head_parts,
    public_message,
)
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_message, pack_value, unpack_message


def prepare(journal: Journal, peers: Peers, credentials: Credentials) -> None:
    """Let links take and send nothing until numbers are compared with the peers that can answer."""
    recount(journal, peers)
    peers.silent, peers.expected_hellos = True, expected_to_answer(journal, credentials)


def recount(journal: Journal, peers: Peers) -> None:
    """Rebuild the links' numbers and digests, which are enough to compare with what peers remember."""
    for record in journal.stored():
        if record.kind == SENT:
            peers.link(record.body.receiver).push(record.body.message, record.value or b"")
        elif record.kind in ARRIVED:
            link = peers.link(record.body.sender)
            link.took(record.body.message, record.value or b"")
            link.voucher = record.body.voucher


def expected_to_answer(journal: Journal, credentials: Credentials) -> set[Peer]:
    """Return the peers whose numbers a restart waits for."""
    records = journal.stored()
    if records[-1].kind == CLOSED:
        return set()
    gone: set[Peer] = set()
    for record in records:
        if record.kind == RECEIVED and (credentials.me == CURATOR or not is_user(record.body.sender)):
            gone |= _gone_with(record.body.sender, public_message(record), credentials)
        elif record.kind == SENT and credentials.me == BOOTSTRAP and public_message(record).type == OUT:
            gone.add(Exclusion(*public_message(record).fields).peer)
    return set(credentials.peers()) - gone


def _gone_with(sender: Peer, message: Message, credentials: Credentials) -> set[Peer]:
    """Return who is not to be waited for any more after this message."""
    if message.type == HEAD:
        return {sender}
    if message.type == DONE and sender == CURATOR:  # users leave once they have the result
        return set(filter(is_user, credentials.peers()))
    if message.type == OUT and sender == BOOTSTRAP:
        who = Exclusion(*message.fields).peer
        return set(credentials.peers()) - {BOOTSTRAP} if who == credentials.me else {who}
    return set()


def event_of(record: Record, me: Peer) -> tuple[Event, bytes]:
    """Return the event of a record, and its packed value."""
    value = (record.value or b"")[SALT_BYTES:]
    if record.kind == RECEIVED:
        return Received(record.body.sender, unpack_message(record.body.message, value)), value
    if record.kind == OWN:
        return Received(me, unpack_message(record.body.message, value)), value
    if record.kind == REFUSED:
        return refused(me, record.body.sender, record.body.fault), value
    return (Started() if record.kind == STARTED else Woken()), value


def refused(me: Peer, sender: Peer, fault: str) -> Received:
    """Return what a machine is told, as of itself, when a message to it was refused."""
    return Received(me, Message(COMPLAINT, (sender, fault)))


def run_again(journal: Journal, me: Peer, happen: Callable[..., None]) -> bool:
    """Run all stored events again, and return whether the machine was started by one of them."""
    started = False
    while (record := journal.next_stored()) is not None:
        if record.kind not in EVENT_KINDS:
            journal.take_stored()
        else:
            event, value = event_of(record, me)
            happen(record.kind, record.body, event, record.body.now_s, value)
            started = started or record.kind == STARTED
    return started


SKELETON_PIECE_BYTES: Final = 48 * 1024


class Ending:
    """The end of a ledger: its signature, and whether its head was handed in."""

    def __init__(
        self, journal: Journal, credentials: Credentials, peers: Peers, skeleton: Callable[[], bytes] | None
    ) -> None:
        self._journal = journal
        self._credentials = credentials
        self._peers = peers
        self._skeleton = skeleton
        self.handed_in = False

    def close(self) -> None:
        told = [
            peer.to_bytes(4, "big", signed=True) + link.acknowledgement
            for peer, link in sorted(self._peers.links.items())
            if link.acknowledgement != NO_VOUCHER
        ]
        close(self._journal, self._credentials, told)
        self._peers.closed = True
        self._peers.shelf.clear()  # nothing is taken any more
        self._peers.flush()

    def hand_in(self, now_s: float) -> None:
        """Hand in the head of a closed ledger, whether or not its records were run again."""
        self.handed_in = True
        if self._credentials.me == CURATOR:
            return
        last = self._journal.stored()[-1] if self._journal.replaying else None
        head = self._journal.head if last is None else last.hash
        hand_in(head, self._peers, self._skeleton, now_s)


def close(journal: Journal, credentials: Credentials, acknowledged: Sequence[bytes]) -> None:
    """Sign both ledgers, the private one first; after this nothing is recorded any more.

    The view names the key of the owner's vouchers, and which acknowledgements there are beside those in messages.
    """
    if not journal.private_closed:
        closed = _closed(credentials, PRIVATE, *journal.private_state(), b"", ())
        journal.append_private(CLOSED, closed, b"", b"")
    key = credentials.voucher_key
    journal.append(CLOSED, _closed(credentials, VIEW, journal.count, journal.head, key, acknowledged))


def _closed(
    credentials: Credentials, role: str, count: int, head: bytes, key: bytes, acknowledged: Sequence[bytes]
) -> Closed:
    parts = head_parts(role, credentials.roster.run_id, credentials.me, count, head, key, *acknowledged)
    return Closed(sign_labelled(credentials.identity, HEAD_LABEL, *parts), key, list(acknowledged))


def hand_in(head: bytes, peers: Peers, skeleton: Callable[[], bytes] | None, now_s: float) -> None:
    """Send the head of a closed ledger, and before it the skeleton if its owner agreed.

    How many records there are is not said: for a user of network shuffling that tells how many reports it relayed.
    These sends are in no ledger: they are the same bytes each time, so a restart just repeats them, before it
    compares numbers with the curator. A skeleton has no value to hide, hence no salt of its own.
    """
    if skeleton is not None:
        content = skeleton()
        for offset in range(0, len(content), SKELETON_PIECE_BYTES):
            piece = pack_value(content[offset : offset + SKELETON_PIECE_BYTES])
            message = Message(SKELETON, (offset, len(content)))
            peers.send(CURATOR, pack_message(message), bytes(SALT_BYTES) + piece, now_s)
    peers.send(CURATOR, pack_message(Message(HEAD, (head,))), b"", now_s)
