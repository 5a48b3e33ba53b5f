"""Value parts that are too long for one frame: they come in pieces, before the message that they belong to.

So a connection that breaks, or a sender that starts again, costs what was on its way and not a whole model: a message
that is sent again comes without its value part at first, and its receiver says how much of that it has. What has come
is kept in memory, of the next message of a link only, since later ones are not taken before it.

Guarantee: `Parts` holds no more than `VALUE_BYTES_MAX` of one link, whatever comes, and `whole` returns a part only if
its bytes came without a gap. A number carries one content however often it is sent (`acknowledgements.py`), so pieces
from two times that a message was sent fit together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from p2pdp.peer.payloads import Piece
from p2pdp.wire.padding import FRAME_BYTES_MAX, frame_size

PIECE_BYTES = 2**20 - 512  # with what is around it, a piece has one of the frames' sizes
VALUE_BYTES_MAX: Final = FRAME_BYTES_MAX
ALL: Final = Piece(0, 0, 0)  # asks for all that is in flight


def places(number: int, of: int, there: int) -> Iterator[Piece]:
    """Yield the places of all pieces that are missing where so many bytes are there; refuse what nobody would take."""
    frame_size(of)
    for at in range(there, of, PIECE_BYTES):
        yield Piece(number, at, of)


class Parts:
    """The pieces of one value part that have come."""

    __slots__ = ("_came", "_number", "_of", "_there")

    def __init__(self) -> None:
        self._begin(0, 0)

    def _begin(self, number: int, of: int) -> None:
        self._number, self._of, self._there = number, of, 0
        self._came: list[bytes] = []

    def there(self, number: int) -> int:
        """Return how many bytes have come of the value part of this message."""
        return self._there if number == self._number else 0

    def add(self, piece: Piece, data: bytes) -> bool:
        """Take a piece if it is the next one; return whether it was."""
        number, at, of = piece
        if (number, of) != (self._number, self._of):
            if not 0 < of <= VALUE_BYTES_MAX:
                return False
            self._begin(number, of)
        if at != self._there or not 0 < len(data) <= of - at:
            return False
        self._came.append(data)
        self._there += len(data)
        return True

    def whole(self, piece: Piece) -> bytes:
        """Return the value part whose end this is; nothing while some of it is missing."""
        is_whole = (piece.number, piece.of) == (self._number, self._of) and self._there == self._of
        return b"".join(self._came) if is_whole else b""
