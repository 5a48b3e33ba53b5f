"""What a restart reads from stored records before it runs them again."""

from __future__ import annotations

from p2pdp.core.events import Event, Received, Started, Woken
from p2pdp.core.ids import Peer
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import OWN, RECEIVED, SALT_BYTES, SENT, STARTED, Record
from p2pdp.wire.codec import unpack_message


def recount(journal: Journal, peers: Peers) -> None:
    """Rebuilds the links' numbers and digests, which are enough to compare with what peers remember."""
    for record in journal.stored():
        if record.kind == SENT:
            peers.link(record.body[0]).push(record.body[1], record.value or b"")
        elif record.kind == RECEIVED:
            peers.link(record.body[1]).took(record.body[2], record.value or b"")


def event_of(record: Record, me: Peer) -> tuple[Event, bytes]:
    """The event that a record tells of, and its packed value."""
    value = (record.value or b"")[SALT_BYTES:]
    if record.kind == RECEIVED:
        return Received(record.body[1], unpack_message(record.body[2], value)), value
    if record.kind == OWN:
        return Received(me, unpack_message(record.body[1], value)), value
    return (Started() if record.kind == STARTED else Woken()), value
