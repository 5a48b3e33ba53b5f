"""The outer frame, which is all that a broker or an observer of the network can read.

A frame is one byte format version, one byte kind, the sender's number (four bytes, signed, big-endian;
roles are negative) and a body. On stream transports four bytes of length, big-endian, go before it.

Guarantee: `decode_frame` accepts nothing else. `FrameReader` gives the same frames however the bytes were
cut on their way, holds at most one unfinished frame, and refuses an impossible length at once, before it
stores a byte of that frame; whole frames of the same chunk go down with it. The sender named here is a
claim that nothing protects: who opens a boxed body learns the true one from inside it.

The caller owes: after a `CodecError` from a reader the connection is out of step and has to be closed.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from p2pdp.core.ids import CURATOR, Peer
from p2pdp.wire.codec import CodecError
from p2pdp.wire.padding import FRAME_BYTES_MAX

FORMAT_VERSION: Final = 1

_HEADER: Final = Struct(">BBi")
_LENGTH: Final = Struct(">I")
_pack_length = _LENGTH.pack

BOXED_HEADER: Final = Struct(">Hi")  # the first two bytes together, which are `BOXED_START` for a boxed frame
BOXED_START: Final = FORMAT_VERSION << 8 | 1
FRAME_HEADER_BYTES: Final[int] = _HEADER.size
PREFIX_BYTES: Final[int] = _LENGTH.size
_CHUNK_BYTES_MIN: Final = 16 * 1024


class Kind(IntEnum):
    """The kind of a frame's body."""

    BOXED = 1
    HELLO = 2
    OFFER = 3
    ENROL = 4
    ROSTER = 5
    ADDRESS = 6


BOXED: Final = Kind.BOXED
HELLO: Final = Kind.HELLO
OFFER: Final = Kind.OFFER
ENROL: Final = Kind.ENROL
ROSTER: Final = Kind.ROSTER
ADDRESS: Final = Kind.ADDRESS

# A look-up takes a fraction of the time of a call of the class.
_KINDS: Final = {int(kind): kind for kind in Kind}


class Frame(NamedTuple):
    """One frame, taken apart."""

    kind: Kind
    sender: Peer
    body: bytes

    def __repr__(self) -> str:  # senders are routes, and bodies are nobody's business
        return f"Frame({self.kind.name}, {len(self.body)} bytes)"


def encode_frame(kind: Kind, sender: Peer, body: bytes) -> bytes:
    """Put the header before a body."""
    return _HEADER.pack(FORMAT_VERSION, kind, sender) + body


def decode_frame(data: bytes) -> Frame:
    """Take a whole frame apart."""
    if not FRAME_HEADER_BYTES <= len(data) <= FRAME_BYTES_MAX:
        raise CodecError("a frame is too short or too long")
    version, number, sender = _HEADER.unpack_from(data)
    if version != FORMAT_VERSION:
        raise CodecError("a frame of another format version")
    kind = _KINDS.get(number)
    if kind is None or sender < CURATOR:
        raise CodecError("a frame of an unknown kind or sender")
    return Frame(kind, sender, data[FRAME_HEADER_BYTES:])


def prefix(frame: bytes) -> bytes:
    """Put the length before a frame, for transports that are streams."""
    return _pack_length(len(frame)) + frame


def length_of(frame: bytes) -> bytes:
    """Return what comes before a frame there."""
    return _pack_length(len(frame))


class FrameReader:
    """Cuts a stream of bytes into the frames it was made of."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        """Take a smaller maximum for connections whose other end has not proved anything yet."""
        self._frame_bytes_max = frame_bytes_max
        self._chunks: list[bytes] = []  # of an unfinished frame; all but the last of at least `_CHUNK_BYTES_MIN`
        self._held = 0
        self._needed_bytes = PREFIX_BYTES
        self._broken = False

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes of an unfinished frame are held; not 0 at the end of a stream means it was cut."""
        return self._held

    def whole(self, chunk: bytes) -> bytes | None:
        """Return the frame that the next bytes are, if that is exactly one, as nearly always; else take nothing."""
        if self._held or self._broken or len(chunk) < PREFIX_BYTES:
            return None
        (frame_bytes,) = _LENGTH.unpack_from(chunk)
        fits = len(chunk) == PREFIX_BYTES + frame_bytes and FRAME_HEADER_BYTES <= frame_bytes <= self._frame_bytes_max
        return bytes(chunk[PREFIX_BYTES:]) if fits else None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes of the stream and return the frames that they complete."""
        if self._broken:
            raise CodecError("the stream was out of step before")
        self._keep(chunk)
        if self._held < self._needed_bytes:
            return []
        chunks, known = self._chunks, self._needed_bytes > PREFIX_BYTES
        held, self._chunks, self._held = self._held, [], 0
        if known and held == self._needed_bytes and len(chunks[0]) > PREFIX_BYTES:  # all of a large frame, and no more
            self._needed_bytes = PREFIX_BYTES
            return [b"".join((memoryview(chunks[0])[PREFIX_BYTES:], *chunks[1:]))]
        data = memoryview(chunks[0] if len(chunks) == 1 else b"".join(chunks))
        frames: list[bytes] = []
        at = 0
        while held - at >= self._needed_bytes:
            (frame_bytes,) = _LENGTH.unpack_from(data, at)
            if not FRAME_HEADER_BYTES <= frame_bytes <= self._frame_bytes_max:
                self._broken = True
                raise CodecError("a frame on the stream is too short or too long")
            self._needed_bytes = PREFIX_BYTES + frame_bytes
            if held - at < self._needed_bytes:
                break
            frames.append(bytes(data[at + PREFIX_BYTES : at + self._needed_bytes]))
            at += self._needed_bytes
            self._needed_bytes = PREFIX_BYTES
        self._keep(bytes(data[at:]))
        return frames

    def _keep(self, chunk: bytes) -> None:
        """Keep bytes of an unfinished frame, small chunks joined with what is there: each takes memory of its own."""
        if self._chunks and len(self._chunks[-1]) < _CHUNK_BYTES_MIN:
            self._chunks[-1] += chunk
        elif chunk:
            self._chunks.append(chunk)
        self._held += len(chunk)
