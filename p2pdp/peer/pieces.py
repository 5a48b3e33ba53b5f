"""Value parts that are too long for one frame: they come in pieces, before the message that they belong to.

So a connection that breaks, or a process that starts again, costs what was on its way and not a whole model: a message
that is sent again comes without its value part at first, and its receiver says how much of that it has. What has come
is kept of the next message of a link only, since later ones are not taken before it.

Pieces are kept in memory and, for the next life of this process, on a `Shelf` beside the ledger. Nothing waits until
they are on the disk, since what is lost is asked for again; nothing there is evidence, or tells anything before it is
whole. They leave the shelf with the message that they belong to.

Guarantee: `Parts` holds no more than `VALUE_BYTES_MAX` of one link, whatever comes or is found on the shelf, and
`whole` returns a part only if its bytes came without a gap. What a disk changed is found by its checksum, and asked for
again from there on. That pieces belong together, and to their message, the link decides by a digest (`link.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final, Protocol
from zlib import crc32

from p2pdp.core.ids import Peer
from p2pdp.peer.payloads import Piece
from p2pdp.wire.padding import FRAME_BYTES_MAX, frame_size

PIECE_BYTES = 2**20 - 512  # with what is around it, a piece has one of the frames' sizes
VALUE_BYTES_MAX: Final = FRAME_BYTES_MAX
ALL: Final = Piece(0, 0, 0)  # asks for all that is in flight
_PLACE: Final = Struct(">IQQI")  # of a piece, and how long it is
_CHECK: Final = Struct(">I")
_HEAD_BYTES: Final = _PLACE.size + _CHECK.size
SHELF_BYTES_MAX: Final = VALUE_BYTES_MAX + 64 * 1024  # with the heads of its pieces


class Shelf(Protocol):
    """Bytes by the peer from which they came. They may be lost or changed at any time; no call fails."""

    def read(self, peer: Peer) -> bytes: ...

    def write(self, peer: Peer, at: int, head: bytes, data: bytes) -> None:
        """Keep both behind the first bytes of what is there, in place of what follows these."""

    def drop(self, peer: Peer) -> None: ...

    def clear(self) -> None: ...


class NoShelf:
    """A shelf for who is not to come back."""

    def read(self, _peer: Peer) -> bytes:
        return b""

    def write(self, peer: Peer, at: int, head: bytes, data: bytes) -> None:
        pass

    def drop(self, peer: Peer) -> None:
        pass

    def clear(self) -> None:
        pass


NO_SHELF: Final = NoShelf()


def places(number: int, of: int, there: int) -> Iterator[Piece]:
    """Yield the places of all pieces that are missing where so many bytes are there; refuse what nobody would take."""
    frame_size(of)
    for at in range(there, of, PIECE_BYTES):
        yield Piece(number, at, of)


class Parts:
    """The pieces of one value part that have come."""

    __slots__ = ("_came", "_number", "_of", "_peer", "_run", "_shelf", "_shelf_bytes", "_there", "digest", "value")

    def __init__(self, number: int, peer: Peer, shelf: Shelf, run: bytes) -> None:
        """Take up those of the next message, with this number, which a peer sent in this `run` to an earlier life."""
        self._peer, self._shelf, self._run = peer, shelf, crc32(run)
        self._begin(0, 0)
        for piece, data in self._kept():
            if piece.number != number or not self._fits(piece, data):
                break
            self._take(data)

    def _begin(self, number: int, of: int) -> None:
        self._number, self._of, self._there = number, of, 0
        self._shelf_bytes = 0
        self._came: list[bytes | memoryview] = []
        self.value = self.digest = b""  # once it is whole, and known to be that of its message

    def there(self, number: int) -> int:
        """Return how many bytes have come of the value part of this message."""
        return self._there if number == self._number else 0

    def add(self, piece: Piece, data: bytes) -> bool:
        """Take a piece if it is the next one; return whether it was."""
        if not self._fits(piece, data):
            return False
        place = _PLACE.pack(*piece[:3], len(data))
        self._shelf.write(self._peer, self._shelf_bytes, place + self._check(place, data), data)
        self._take(data)
        return True

    def _fits(self, piece: Piece, data: bytes | memoryview) -> bool:
        number, at, of, _ = piece
        if (number, of) != (self._number, self._of):
            if not 0 < of <= VALUE_BYTES_MAX:
                return False
            self._begin(number, of)
        return at == self._there and 0 < len(data) == min(PIECE_BYTES, of - at)

    def _take(self, data: bytes | memoryview) -> None:
        self._came.append(data)
        self._there += len(data)
        self._shelf_bytes += _HEAD_BYTES + len(data)

    def _check(self, place: bytes | memoryview, data: bytes | memoryview) -> bytes:
        return _CHECK.pack(crc32(data, crc32(place, self._run)))

    def _kept(self) -> Iterator[tuple[Piece, memoryview]]:
        """Yield what is on the shelf, up to the first piece that is not as it was."""
        kept = memoryview(self._shelf.read(self._peer))
        while kept:
            try:
                *piece, size = _PLACE.unpack_from(kept)
            except error:
                return
            place, check, data = kept[: _PLACE.size], kept[_PLACE.size : _HEAD_BYTES], kept[_HEAD_BYTES:][:size]
            if len(data) < size or self._check(place, data) != check:
                return
            yield Piece(*piece), data
            kept = kept[_HEAD_BYTES + size :]

    def whole(self, piece: Piece) -> bytes:
        """Return the value part whose end this is; nothing while some of it is missing."""
        if (piece.number, piece.of) != (self._number, self._of) or self._there != self._of:
            return b""
        joined = b"".join(self._came)
        self._came = [joined]
        return joined

    def drop(self) -> None:
        """Forget all, on the shelf too."""
        self._begin(0, 0)
        self._shelf.drop(self._peer)
