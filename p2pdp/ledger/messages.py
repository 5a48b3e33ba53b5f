"""Messages as they stand in records."""

from __future__ import annotations

from typing import Final

from p2pdp.core.step import Message
from p2pdp.ledger.records import NO_VALUE_DIGEST, OWN, PUBLISHED, RECEIVED, SALT_BYTES, SENT, LedgerError, Record
from p2pdp.wire.codec import CodecError, pack_message, unpack_message

_PLACES: Final = {RECEIVED: 2, OWN: 1, SENT: 1, PUBLISHED: 0}


def carries_message(record: Record) -> bool:
    return record.kind in _PLACES


def carries_value(record: Record) -> bool:
    """Return whether the message has a value; the digest of its value part tells, in a skeleton too."""
    return record.digest != NO_VALUE_DIGEST


def packed_message(record: Record) -> bytes:
    """The packed public part, as it crossed the wire."""
    packed: bytes = record.body[_PLACES[record.kind]]
    return packed


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
