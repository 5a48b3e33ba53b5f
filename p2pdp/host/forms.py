"""The messages that every protocol shares, before a machine gets them: their form, and what links learn of them.

Guarantee: what `read_message` lets pass has the fields that `core.messages` names, so neither the host nor a
machine that counts on them can be made to fail by a peer. Messages that a protocol made up are its own to check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import Message
from p2pdp.host.peers import Peers
from p2pdp.host.seat import Seat
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.wire.codec import CodecError, unpack_message

Check = Callable[[Message], str | None]  # names what is wrong with the form of a protocol's message
_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys((messages.READY, messages.GO, messages.RESULT, messages.DONE, messages.OVER), ()),
    **dict.fromkeys((messages.PROBE, messages.ALIVE, messages.HEEDED), ()),
    **dict.fromkeys((messages.BEGIN, messages.TOKEN, messages.TOTAL, messages.LOST), (int, int)),
    messages.HEAD: (bytes,),
    messages.SKELETON: (int, int),
    messages.RELAY: (int, int, int),
    messages.REPORT: (int, int),
    messages.RESOLVED: (list, list),
    **dict.fromkeys((messages.SILENT, messages.SPARED), (int,)),
    messages.OUT: (int, bytes),
    messages.SEEN: (int, list, list),
}


def read_message(packed: bytes, salt: bytes, value: bytes) -> Message | None:
    """A message as it arrived, or None if it is malformed. There is a value and a salt, or neither."""
    if len(salt) != (SALT_BYTES if value else 0):
        return None
    try:
        message = unpack_message(packed, value)
    except CodecError:
        return None
    expected = _FIELDS.get(message.type)
    if expected is not None and tuple(map(type, message.fields)) != expected:
        return None
    if message.type == messages.SEEN and not (_lists_of(3, message.fields[1]) and _lists_of(2, message.fields[2])):
        return None
    if message.type == messages.RESOLVED and not (_whole(message.fields[0]) and _lists_of(2, message.fields[1])):
        return None
    return message


def _lists_of(length: int, entries: list[object]) -> bool:
    return all(isinstance(entry, list) and len(entry) == length and _whole(entry) for entry in entries)


def _whole(entries: list[object]) -> bool:
    return all(type(entry) is int for entry in entries)


def apply_to_links(peers: Peers, seat: Seat, sender: Peer, message: Message) -> None:
    """What the links have to know of a message before the machine gets it: who is out."""
    if sender == BOOTSTRAP and message.type == messages.OUT:
        _out(peers, seat, message.fields[0])


def apply_after_close(peers: Peers, seat: Seat, sender: Peer, message: Message, now_s: float) -> None:
    """Nothing is recorded any more, but the head that bootstrap misses goes out once more, or never again."""
    apply_to_links(peers, seat, sender, message)
    if sender == BOOTSTRAP and message.type == messages.PROBE:
        peers.send_again(peers.link(CURATOR), now_s)


def _out(peers: Peers, seat: Seat, peer: Peer) -> None:
    """Nothing passes between a user that is out and anybody but bootstrap, which has told it so."""
    if peer == seat.me:
        for other in seat.peers():
            if other != BOOTSTRAP:
                peers.refuse(other)
    elif is_user(peer) and seat.knows(peer):
        peers.refuse(peer)
