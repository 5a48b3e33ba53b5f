"""What crosses a host's loopback interface: recorded, put together to streams, cut into frames, searched.

    with Capture(host) as capture: ...         # a run inside the host
    frames = cut(capture.streams())
    found = search([frame.body for frame in frames], {"salts": [...]})

Guarantee: `cut` accounts for every byte that was carried, or fails. A packet that the kernel had to drop
from the recording fails it as well, so what was not found was not there.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple, Self

import msgpack
import numpy as np

from p2pdp.wire.frames import PREFIX_BYTES, Kind, decode_frame
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.netns import Host

ETH_P_ALL: Final = 3
SO_RCVBUFFORCE: Final = 33
SOL_PACKET: Final = 263
PACKET_STATISTICS: Final = 6
PACKET_IGNORE_OUTGOING: Final = 23  # on loopback each packet goes out and comes in
BUFFER_BYTES: Final = 1 << 29
PACKET_BYTES_MAX: Final = 1 << 18

SYN, ACK = 0x02, 0x10
TCP: Final = 6
CALLED_BYTES: Final = 4  # whom a connection is for, in `transports/tcp/transport.py`
LEAVE: Final = bytes(FRAME_SIZES[0])

_PORTS_AND_SEQUENCE: Final = Struct(">HHI")
_STATISTICS: Final = Struct("II")

End = tuple[bytes, int]  # address and port


@dataclass
class Stream:
    """One direction of one connection."""

    dialled: bool  # from the end that made the connection
    start: int  # sequence number of its first byte
    ends: tuple[End, ...] = ()  # from where, and to where
    parts: dict[int, bytes] = field(default_factory=dict)  # by place

    def add(self, sequence: int, data: bytes) -> None:
        place = (sequence - self.start) % (1 << 32)
        if len(data) > len(self.parts.get(place, b"")):
            self.parts[place] = data

    def whole(self) -> bytes:
        data = bytearray()
        for place, part in sorted(self.parts.items()):  # some of it may have been sent twice
            assert place <= len(data), "a part of a stream is missing"
            data[place:] = part if place + len(part) >= len(data) else data[place:]
        return bytes(data)


class Capture:
    """Everything that arrives on a host's loopback interface from now on; read when all is over."""

    def __init__(self, host: Host) -> None:
        with host.inside():  # protocol 0: nothing is received, from any interface, before it is bound to one
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._socket.bind(("lo", ETH_P_ALL))
        self._socket.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def packets(self) -> list[bytes]:
        """IP packets, since the last time they were asked for."""
        found = []
        while True:
            try:
                found.append(self._socket.recv(PACKET_BYTES_MAX))
            except BlockingIOError:
                break
        statistics = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size)
        assert _STATISTICS.unpack(statistics)[1] == 0, "the recording has a gap"
        return found

    def streams(self) -> list[Stream]:
        return streams(self.packets())


def streams(packets: Iterable[bytes]) -> list[Stream]:
    """All streams that packets of TCP belong to. Other packets are none of ours and fail it."""
    current: dict[tuple[End, End], Stream] = {}
    found = []
    for packet in packets:
        header_bytes, total_bytes = (packet[0] & 0x0F) * 4, int.from_bytes(packet[2:4], "big")
        assert (packet[0] >> 4, packet[9]) == (4, TCP), "something else than TCP crossed the interface"
        source, target, segment = packet[12:16], packet[16:20], packet[header_bytes : total_bytes or None]
        source_port, target_port, sequence = _PORTS_AND_SEQUENCE.unpack_from(segment)
        flags, data = segment[13], segment[(segment[12] >> 4) * 4 :]
        ends = (source, source_port), (target, target_port)
        if flags & SYN and (ends not in current or current[ends].start != sequence + 1):
            current[ends] = Stream(dialled=not flags & ACK, start=(sequence + 1) % (1 << 32), ends=ends)
            found.append(current[ends])
        elif data:
            current[ends].add(sequence, data)
    return found


class Seen(NamedTuple):
    """A frame as it crossed the wire, after its length; `kind` is None for the one that only says LEAVE."""

    kind: Kind | None
    size: int
    body: bytes


def cut(found: Iterable[Stream]) -> list[Seen]:
    """The frames of all streams, of which nothing may be left over."""
    frames = []
    for stream in found:
        data = stream.whole()
        at = CALLED_BYTES if stream.dialled else 0
        while at < len(data):
            size = int.from_bytes(data[at : at + PREFIX_BYTES], "big")
            whole = data[at + PREFIX_BYTES : at + PREFIX_BYTES + size]
            assert len(whole) == size, "a stream ends within a frame"
            frames.append(seen(whole))
            at += PREFIX_BYTES + size
    return frames


def seen(whole: bytes) -> Seen:
    if whole == LEAVE:
        return Seen(None, len(whole), b"")
    frame = decode_frame(whole)
    return Seen(frame.kind, len(whole), frame.body)


def search(bodies: Iterable[bytes], wanted: Mapping[str, Iterable[bytes]]) -> dict[str, int]:
    """How many of the wanted byte strings of each name stand anywhere in the bodies, where any does."""
    text = b"\n".join(bodies)
    found = {name: sum(_stands(text, strings)) for name, strings in wanted.items()}
    return {name: count for name, count in found.items() if count}


def _stands(text: bytes, strings: Iterable[bytes]) -> list[bool]:
    """For each string whether it is in the text; all of their first eight bytes are looked up at once."""
    distinct = sorted(set(strings))
    long = [string for string in distinct if len(string) >= 8]
    starts = np.frombuffer(b"".join(string[:8] for string in long), "<u8")
    there: set[int] = set()
    for shift in range(8):
        words = np.frombuffer(text, "<u8", (len(text) - shift) // 8, shift) if len(text) >= shift + 8 else starts[:0]
        there.update(np.intersect1d(words, starts).tolist())
    candidates = [string for string, start in zip(long, starts.tolist(), strict=True) if start in there]
    short = [string for string in distinct if len(string) < 8]
    return [string in text for string in candidates + short]


def spellings(number: float) -> list[bytes]:
    """A number as bytes, in every way it might be written by mistake."""
    real = float(number)
    forms = [Struct(f"{order}d").pack(real) for order in "<>"] + [msgpack.packb(real), repr(real).encode()]
    if isinstance(number, int):
        forms += [Struct(f"{order}q").pack(number) for order in "<>"] + [msgpack.packb(number), str(number).encode()]
    return forms
