"""The payload of a frame inside its channel: a message with its number, or control of the link.

A payload inside the channel is: flags (1), number (4), then the sender's voucher (`crypto/vouchers.py`), which is the
acknowledged number (4) and a tag (12); then for data the length of the packed message (4), the packed message and its
value part; for control a packed hello, or an empty list. So beside messages a link tells what it has received of the
peer itself, and nothing of anybody else.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any, Final, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.crypto.vouchers import VOUCHER_BYTES
from p2pdp.wire.codec import CodecError, unpack

DATA: Final = 1
CONTROL: Final = 2
RESEND: Final = 4  # control: "send again what I have not acknowledged"
POKE: Final = 8  # control: "answer me"

HEAD: Final = Struct(">BII12s")
DATA_HEAD: Final = Struct(">BII12sI")
DATA_HEAD_BYTES: Final[int] = DATA_HEAD.size
VOUCHER_AT: Final = 5
VOUCHER_END: Final = VOUCHER_AT + VOUCHER_BYTES
_NONE: Final[list[Any]] = []
_DATA_FLAG: Final = bytes((DATA,))
_new: Final = tuple.__new__  # see `acknowledgements.py`


class Payload(NamedTuple):
    """The content of a frame."""

    flags: int
    number: int
    acknowledged: int
    voucher: bytes  # this number again, and its tag
    message: bytes
    value: bytes
    hello: list[Any]


class Arrival(NamedTuple):
    """The next message in order from a peer; not yet recorded, not yet counted."""

    peer: Peer
    message: bytes
    value: bytes
    voucher: bytes = b""


def parse_payload(data: bytes) -> Payload:
    try:
        if data[:1] == _DATA_FLAG:
            flags, number, acknowledged, _, length = DATA_HEAD.unpack_from(data)
            end = DATA_HEAD_BYTES + length
            if number == 0 or end > len(data):
                raise CodecError("a message without a number, or shorter than it says")
            voucher = data[VOUCHER_AT:VOUCHER_END]
            return _new(Payload, (flags, number, acknowledged, voucher, data[DATA_HEAD_BYTES:end], data[end:], _NONE))
        flags, number, acknowledged, _ = HEAD.unpack_from(data)
    except struct.error as error:
        raise CodecError("truncated payload") from error
    if flags & ~(RESEND | POKE) != CONTROL or number != 0:
        raise CodecError("neither data nor control")
    hello = unpack(data[HEAD.size :])
    if not isinstance(hello, list):
        raise CodecError("malformed control payload")
    return Payload(flags, number, acknowledged, data[VOUCHER_AT:VOUCHER_END], b"", b"", hello)
