"""The payload of a frame inside its channel: a message with its number, or control of the link.

A payload inside the channel is: flags (1), number (4), then the sender's voucher (`crypto/vouchers.py`), which is the
acknowledged number (4) and a tag (12); then for data the length of the packed message (4), the packed message and its
value part; for control a packed hello, or an empty list. So beside messages a link tells what it has received of the
peer itself, and nothing of anybody else.

A value part that is too long for one frame comes before its message, in pieces (`pieces.py`). A piece is control with a
number (4), a place (8), the length of the whole part (8) and some of its bytes; the message has that length (8), and
the running digest of all messages up to it (16), where its value part would be. Who asks for what is missing of such a
part says the number, and how much is there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.crypto.vouchers import DIGEST_BYTES, VOUCHER_BYTES
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.wire.codec import CodecError, unpack, unpack_message

DATA: Final = 1
CONTROL: Final = 2
RESEND: Final = 4  # control: "send again what I have not acknowledged"
POKE: Final = 8  # control: "answer me"
PIECE: Final = 16  # the value part comes, or came, in pieces

HEAD: Final = Struct(">BII12s")
DATA_HEAD: Final = Struct(">BII12sI")
DATA_HEAD_BYTES: Final[int] = DATA_HEAD.size
VOUCHER_AT: Final = 5
VOUCHER_END: Final = VOUCHER_AT + VOUCHER_BYTES
_NONE: Final[list[Any]] = []
_DATA_FLAG: Final = bytes((DATA,))
_COPIED_BYTES: Final = 1024  # up to here a copy takes less time than a view
_PIECED_FLAGS: Final = DATA | PIECE
_PIECE: Final = Struct(">IQQ")
_WHOLE: Final = Struct(f">Q{DIGEST_BYTES}s")
_new: Final = tuple.__new__  # see `acknowledgements.py`


class Piece(NamedTuple):
    """A place in the value part of a message."""

    number: int  # of the message
    at: int
    of: int  # bytes of the whole part; 0 where nothing but the place is said
    digest: bytes = b""  # at the end of a part: the running one, of all messages up to this one

    def packed(self) -> bytes:
        return _PIECE.pack(*self[:3])


class Payload(NamedTuple):
    """The content of a frame."""

    flags: int
    number: int
    acknowledged: int
    voucher: bytes  # this number again, and its tag
    message: bytes
    value: bytes
    hello: list[Any]
    piece: Piece | None = None


class Arrival(NamedTuple):
    """The next message in order from a peer; not yet recorded, not yet counted."""

    peer: Peer
    message: bytes
    value: bytes
    voucher: bytes = b""


def in_pieces(value: bytes, digest: bytes) -> bytes:
    """Return what stands in the place of a value part that came in pieces."""
    return _WHOLE.pack(len(value), digest)


def parse_payload(data: bytes) -> Payload:
    try:
        if data[:1] == _DATA_FLAG or (data and data[0] == _PIECED_FLAGS):
            flags, number, acknowledged, _, length = DATA_HEAD.unpack_from(data)
            end = DATA_HEAD_BYTES + length
            if number == 0 or end > len(data):
                raise CodecError("a message without a number, or shorter than it says")
            voucher, message, value = data[VOUCHER_AT:VOUCHER_END], data[DATA_HEAD_BYTES:end], data[end:]
            piece = None
            if flags != DATA:
                of, digest = _WHOLE.unpack(value)
                piece, value = Piece(number, of, of, digest), b""
            return _new(Payload, (flags, number, acknowledged, voucher, message, value, _NONE, piece))
        flags, number, acknowledged, _ = HEAD.unpack_from(data)
        if flags & ~(RESEND | POKE | PIECE) != CONTROL or number != 0:
            raise CodecError("neither data nor control")
        voucher, rest = data[VOUCHER_AT:VOUCHER_END], data[HEAD.size :]
        if flags & PIECE:
            place, part = Piece(*_PIECE.unpack_from(rest)), rest[_PIECE.size :]
            if place.number == 0 or (flags & RESEND and part):
                raise CodecError("a piece of no message")
            return Payload(flags, 0, acknowledged, voucher, b"", part, _NONE, place)
    except struct.error as error:
        raise CodecError("truncated payload") from error
    hello = unpack(rest)
    if not isinstance(hello, list):
        raise CodecError("malformed control payload")
    return Payload(flags, number, acknowledged, voucher, b"", b"", hello)


Check = Callable[[Message], str | None]  # what is wrong with a message, as the kind of a fault


def read_message(packed: bytes, part: bytes) -> Message | None:
    """Return a message as it arrived, or None if it is unreadable. There is a value and a salt, or neither."""
    if 0 < len(part) <= SALT_BYTES:
        return None
    try:
        return unpack_message(packed, memoryview(part)[SALT_BYTES:] if len(part) > _COPIED_BYTES else part[SALT_BYTES:])
    except CodecError:
        return None
