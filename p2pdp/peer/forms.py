"""Messages before a machine gets them: how they are read, and what links learn of them."""

from __future__ import annotations

from collections.abc import Callable

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import Message
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import CodecError, unpack_message

Check = Callable[[Message], str | None]  # what is wrong with a message, as the kind of a fault


def read_message(packed: bytes, salt: bytes, value: bytes) -> Message | None:
    """Return a message as it arrived, or None if it is unreadable. There is a value and a salt, or neither."""
    if len(salt) != (SALT_BYTES if value else 0):
        return None
    try:
        return unpack_message(packed, value)
    except CodecError:
        return None


def apply_to_links(peers: Peers, credentials: Credentials, sender: Peer, message: Message) -> None:
    """What the links have to know of a message before the machine gets it: who is out."""
    if sender == BOOTSTRAP and message.type == messages.OUT:
        _out(peers, credentials, messages.Exclusion(*message.fields).peer)


def apply_after_close(peers: Peers, credentials: Credentials, sender: Peer, message: Message, now_s: float) -> None:
    """Nothing is recorded any more, but the head that bootstrap misses goes out once more, or never again."""
    apply_to_links(peers, credentials, sender, message)
    if sender == BOOTSTRAP and message.type == messages.PROBE:
        peers.send_again(peers.link(CURATOR), now_s)


def _out(peers: Peers, credentials: Credentials, peer: Peer) -> None:
    """Nothing passes between a user that is out and anybody but bootstrap, which has told it so."""
    if peer == credentials.me:
        for other in credentials.peers():
            if other != BOOTSTRAP:
                peers.refuse(other)
    elif is_user(peer) and credentials.knows(peer):
        peers.refuse(peer)
