"""What a frame says inside its channel: a message with its number, or control of the link.

A payload inside the channel is: flags (1), number (8), acknowledged number (8), then for data
the length of the packed message (4), the packed message and its value part; for control a packed
[settled, hello]. Data with the flag `SETTLED` carry reports too, where the frame has room for them: after the
length their number (1), and item (8) and step (8) of each.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any, Final, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.wire.codec import CodecError, unpack

DATA: Final = 1
CONTROL: Final = 2
RESEND: Final = 4  # control: "send again what I have not acknowledged"
POKE: Final = 8  # control: "answer me, and say what has settled"
SETTLED: Final = 16  # data: reports of what has settled are here too

HEAD: Final = Struct(">BQQ")
DATA_HEAD: Final = Struct(">BQQI")
DATA_HEAD_BYTES: Final[int] = DATA_HEAD.size
REPORT: Final = Struct(">QQ")
REPORTED_MAX: Final = (1 << 64) - 1
_NONE: Final[list[Any]] = []
_DATA_FLAGS: Final = frozenset((bytes((DATA,)), bytes((DATA | SETTLED,))))
_new: Final = tuple.__new__  # see `link.py`


class Payload(NamedTuple):
    """What a frame says; `settled` are items and steps, as the peer put them there."""

    flags: int
    number: int
    acknowledged: int
    message: bytes
    value: bytes
    settled: list[Any]
    hello: list[Any]


class Arrival(NamedTuple):
    """The next message in order from a peer; not yet recorded, not yet counted."""

    peer: Peer
    message: bytes
    value: bytes


def parse_payload(data: bytes) -> Payload:
    try:
        if data[:1] in _DATA_FLAGS:
            flags, number, acknowledged, length = DATA_HEAD.unpack_from(data)
            start, settled = (DATA_HEAD_BYTES, _NONE) if flags == DATA else reports(data)
            end = start + length
            if number == 0 or end > len(data):
                raise CodecError("a message without a number, or shorter than it says")
            return _new(Payload, (DATA, number, acknowledged, data[start:end], data[end:], settled, _NONE))
        flags, number, acknowledged = HEAD.unpack_from(data)
    except struct.error as error:
        raise CodecError("truncated payload") from error
    if flags & ~(RESEND | POKE) != CONTROL or number != 0:
        raise CodecError("neither data nor control")
    control = unpack(data[HEAD.size :])
    if not isinstance(control, list) or len(control) != 2 or not isinstance(control[0], list):
        raise CodecError("malformed control payload")
    settled, hello = control
    if any(type(entry) is not list or [type(part) for part in entry] != [int, int] for entry in settled):
        raise CodecError("malformed report")
    return Payload(flags, number, acknowledged, b"", b"", settled, hello)


def reports(data: bytes) -> tuple[int, list[Any]]:
    """Where the message begins, and the reports before it."""
    if len(data) <= DATA_HEAD_BYTES:
        raise CodecError("truncated payload")
    at = DATA_HEAD_BYTES + 1
    end = at + data[DATA_HEAD_BYTES] * REPORT.size
    if end > len(data):
        raise CodecError("fewer reports than it says")
    return end, [REPORT.unpack_from(data, place) for place in range(at, end, REPORT.size)]
