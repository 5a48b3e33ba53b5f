"""Messages as they stand in records."""

from __future__ import annotations

from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.ledger.records import NO_VALUE_DIGEST, OWN, PUBLISHED, RECEIVED, SALT_BYTES, SENT, LedgerError, Record
from p2pdp.wire.codec import CodecError, pack_message, unpack_message

_WITH_MESSAGE: Final = frozenset({RECEIVED, OWN, SENT, PUBLISHED})


def carries_message(record: Record) -> bool:
    return record.kind in _WITH_MESSAGE


def carries_value(record: Record) -> bool:
    """Return whether the message has a value; the digest of its value part tells, in a skeleton too."""
    return record.digest != NO_VALUE_DIGEST


def packed_message(record: Record) -> bytes:
    """The packed public part, as it crossed the wire."""
    packed: bytes = record.body.message
    return packed


def other_end(record: Record) -> Peer:
    """Return who sent a message that was received, or whom one that was sent goes to."""
    other: Peer = record.body.sender if record.kind == RECEIVED else record.body.receiver
    return other


def packed_type(kind: str) -> bytes:
    """How every message of this type begins as `pack_message` packs it."""
    return pack_message(Message(kind))[:-1]  # without its fields, an empty list of one byte


def public_message(record: Record) -> Message:
    """The message without its value: all that a skeleton holds."""
    return _unpacked(record, b"")


def whole_message(record: Record) -> Message:
    """The message with its value; of a skeleton's record without."""
    return _unpacked(record, (record.value or b"")[SALT_BYTES:])


def _unpacked(record: Record, value: bytes) -> Message:
    try:
        return unpack_message(packed_message(record), value)
    except (CodecError, IndexError, TypeError):
        raise LedgerError(f"record {record.index}: holds no readable message") from None
