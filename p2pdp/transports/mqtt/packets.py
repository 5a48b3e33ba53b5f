"""The packets that stations exchange through a broker: one packet is the payload of one message.

A packet is its head, the name of the station that sends it, and, for `FRAME`, a frame as it is. The head is the
format version, what the packet is about, which end of a call speaks, the call's number, whom it is for, and the
length of the name. All heads of a station have the same length, so sizes tell no more than those of frames do.

Guarantee: `read_packet` accepts nothing else. Who sends is a claim, as in a frame; but a call's number is known
only to its ends and to the broker, so nobody else can end it or put something into it.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from p2pdp.core.addresses import STATION_LETTERS_MAX, is_station
from p2pdp.core.ids import Peer
from p2pdp.wire.padding import FRAME_BYTES_MAX

VERSION: Final = 1
CALL_BYTES: Final = 8
_CALLER: Final = 0x80
_HEAD: Final = Struct(f">BB{CALL_BYTES}siB")
PACKET_BYTES_MAX: Final = _HEAD.size + STATION_LETTERS_MAX + FRAME_BYTES_MAX


class PacketError(Exception):
    """Bytes that are no packet of a station."""


class Act(IntEnum):
    """The purpose of a packet: `LEAVE` asks for an `END`, before which everything under way still arrives.

    `PROBE` wants no answer where the call is known, and gets an `END` where it is not.
    """

    CALL = 1
    ACCEPT = 2
    FRAME = 3
    LEAVE = 4
    END = 5
    PROBE = 6


_ACTS: Final = {int(act): act for act in Act}


class Packet(NamedTuple):
    act: Act
    from_caller: bool
    call: bytes
    called: Peer
    station: str
    frame: bytes

    def __repr__(self) -> str:  # who talks to whom is nobody's business
        return f"Packet({self.act.name}, {len(self.frame)} bytes of frame)"


def packet_head(act: Act, call: bytes, called: Peer, station: bytes, *, from_caller: bool) -> bytes:
    """Return the head of a packet, which its frame follows."""
    return _HEAD.pack(VERSION, act | (_CALLER if from_caller else 0), call, called, len(station)) + station


def read_packet(data: bytes) -> Packet:
    if not _HEAD.size < len(data) <= PACKET_BYTES_MAX:
        raise PacketError("a packet is too short or too long")
    version, number, call, called, letters = _HEAD.unpack_from(data)
    act = _ACTS.get(number & ~_CALLER)
    rest = _HEAD.size + letters
    try:
        station = data[_HEAD.size : rest].decode("ascii")
    except UnicodeDecodeError:
        station = ""
    if version != VERSION or act is None or len(station) != letters or not is_station(station):
        raise PacketError("a packet of another kind or of nobody")
    if (act is Act.FRAME) == (len(data) == rest):
        raise PacketError("a packet has a frame that has none, or none where one belongs")
    return Packet(act, bool(number & _CALLER), call, called, station, data[rest:])
