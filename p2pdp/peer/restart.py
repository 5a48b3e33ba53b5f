"""What a restart reads from stored records before it runs them again.

A restart waits for its peers' numbers before it draws anything. It does not wait for those of whom it knows
that they left or will not be talked to again, since what they might prove is in its ledger already: after a
peer's head nothing more comes from it, and a closed ledger draws nothing. They are heard if they answer.
"""

from __future__ import annotations

from collections.abc import Callable

from p2pdp.core.events import Event, Received, Started, Woken
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import DONE, HEAD, OUT, Exclusion
from p2pdp.core.step import Message
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.messages import public_message
from p2pdp.ledger.records import CLOSED, EVENT_KINDS, OWN, RECEIVED, SALT_BYTES, SENT, STARTED, Record
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import unpack_message


def prepare(journal: Journal, peers: Peers, credentials: Credentials) -> None:
    """Until numbers are compared with those who can, links take and send nothing."""
    recount(journal, peers)
    peers.silent, peers.expected_hellos = True, expected_to_answer(journal, credentials)


def recount(journal: Journal, peers: Peers) -> None:
    """Rebuilds the links' numbers and digests, which are enough to compare with what peers remember."""
    for record in journal.stored():
        if record.kind == SENT:
            peers.link(record.body.receiver).push(record.body.message, record.value or b"")
        elif record.kind == RECEIVED:
            peers.link(record.body.sender).took(record.body.message, record.value or b"")


def expected_to_answer(journal: Journal, credentials: Credentials) -> set[Peer]:
    """The peers whose numbers a restart waits for."""
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
    """Who is not to be waited for any more after this message."""
    if message.type == HEAD:
        return {sender}
    if message.type == DONE and sender == CURATOR:  # users leave once they have the result
        return set(filter(is_user, credentials.peers()))
    if message.type == OUT and sender == BOOTSTRAP:
        who = Exclusion(*message.fields).peer
        return set(credentials.peers()) - {BOOTSTRAP} if who == credentials.me else {who}
    return set()


def event_of(record: Record, me: Peer) -> tuple[Event, bytes]:
    """The event that a record tells of, and its packed value."""
    value = (record.value or b"")[SALT_BYTES:]
    if record.kind == RECEIVED:
        return Received(record.body.sender, unpack_message(record.body.message, value)), value
    if record.kind == OWN:
        return Received(me, unpack_message(record.body.message, value)), value
    return (Started() if record.kind == STARTED else Woken()), value


def run_again(journal: Journal, me: Peer, happen: Callable[..., None]) -> bool:
    """Tells all stored events again; gives whether the machine was started by one of them."""
    started = False
    while (record := journal.next_stored()) is not None:
        if record.kind not in EVENT_KINDS:
            journal.take_stored()
        else:
            event, value = event_of(record, me)
            happen(record.kind, record.body, event, record.body.now_s, value)
            started = started or record.kind == STARTED
    return started
