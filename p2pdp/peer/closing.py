"""The end of a peer's ledger: its signature, and what is handed to the curator afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import HEAD, SKELETON
from p2pdp.core.step import Message
from p2pdp.crypto.identity import sign_labelled
from p2pdp.ledger.heads import HEAD_LABEL, head_parts
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, SALT_BYTES
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_message, pack_value

SKELETON_PIECE_BYTES: Final = 48 * 1024


class Ending:
    """What is done at the end of a ledger, and whether it was."""

    def __init__(
        self, journal: Journal, credentials: Credentials, peers: Peers, skeleton: Callable[[], bytes] | None
    ) -> None:
        self._journal = journal
        self._credentials = credentials
        self._peers = peers
        self._skeleton = skeleton
        self.handed_in = False

    def close(self) -> None:
        close(self._journal, self._credentials)
        self._peers.closed = True
        self._peers.flush()

    def hand_in(self, now_s: float) -> None:
        """Of a closed ledger, run again or not."""
        self.handed_in = True
        if self._credentials.me == CURATOR:
            return
        last = self._journal.stored()[-1] if self._journal.replaying else None
        head = self._journal.head if last is None else last.hash
        hand_in(head, self._peers, self._skeleton, now_s)


def close(journal: Journal, credentials: Credentials) -> None:
    """Signs both ledgers, the private one first; after this nothing is recorded any more."""
    if not journal.private_closed:
        journal.append_private(CLOSED, (_signature(credentials, PRIVATE, *journal.private_state()),), b"", b"")
    journal.append(CLOSED, (_signature(credentials, VIEW, journal.count, journal.head),))


def _signature(credentials: Credentials, role: str, count: int, head: bytes) -> bytes:
    parts = head_parts(role, credentials.roster.run_id, credentials.me, count, head)
    return sign_labelled(credentials.identity, HEAD_LABEL, *parts)


def hand_in(head: bytes, peers: Peers, skeleton: Callable[[], bytes] | None, now_s: float) -> None:
    """Sends the head of a closed ledger, and before it the skeleton if its owner agreed.

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
