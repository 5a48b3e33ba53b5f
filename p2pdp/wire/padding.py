"""Frames come in a few sizes, so that their length says next to nothing about their content.

Up to 16 KiB each size is four times the one before, which is where all messages of control are. Above it, where values
of many numbers are, each is at most an eighth larger than the one before: what such a value takes follows from public
numbers.

Guarantee: whatever is padded here ends up, together with its overhead, in the smallest of `FRAME_SIZES`
that holds it, and `unpad` accepts exactly what `pad` makes: the content, one byte 0x80, zeros. The
marker byte makes it unambiguous for content that itself ends in zeros.

The caller owes: `overhead_bytes` is everything of the frame that is not the padded text (header, nonce,
authenticator), and the same number on both sides. Padding goes inside the encryption.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Protocol

from p2pdp.core.errors import UsageError

_LARGE: Final = 16 * 1024
_OCTAVES: Final = 10  # of larger sizes, each in eight steps
FRAME_SIZES: Final[tuple[int, ...]] = (
    *(256 << (2 * step) for step in range(3)),
    *(_LARGE // 8 * eighths << octave for octave in range(_OCTAVES) for eighths in range(8, 16)),
    _LARGE << _OCTAVES,
)
FRAME_BYTES_MAX: Final[int] = FRAME_SIZES[-1]

_SMALLEST: Final = FRAME_SIZES[0]
_NEXT_SMALLER: Final = dict(zip(FRAME_SIZES, (0, *FRAME_SIZES), strict=False))
_MARKER: Final = b"\x80"


class Slices(Protocol):
    """Bytes, or whatever has slices that are bytes."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


class FrameTooLarge(UsageError):
    """The content does not fit into the largest frame."""


class PaddingError(Exception):
    """Bytes of a peer that are no padded text."""


def frame_size(content_bytes: int) -> int:
    """Return the size of the smallest frame for so many bytes, marker and overhead included."""
    if content_bytes > FRAME_BYTES_MAX:
        raise FrameTooLarge(
            f"a message needs a frame of {content_bytes} bytes, and frames have at most {FRAME_BYTES_MAX}: "
            "use fewer columns or categories"
        )
    return _SMALLEST if content_bytes <= _SMALLEST else FRAME_SIZES[bisect_left(FRAME_SIZES, content_bytes)]


def pad(plaintext: bytes, overhead_bytes: int) -> bytes:
    """Lengthen the text so that with its overhead it has one of the frame sizes."""
    size = frame_size(len(plaintext) + 1 + overhead_bytes)
    return (plaintext + _MARKER).ljust(size - overhead_bytes, b"\0")


def pad_all(pieces: Sequence[bytes | memoryview], overhead_bytes: int) -> bytes:
    """Put pieces of a text together and pad it, with a single copy of each."""
    text_bytes = sum(map(len, pieces)) + 1 + overhead_bytes
    return b"".join((*pieces, _MARKER, bytes(frame_size(text_bytes) - text_bytes)))


def unpad(padded: bytes, overhead_bytes: int) -> bytes:
    """Return the text that was padded, or raise `PaddingError` if `pad` could not have made this."""
    return padded[: end_of_text(padded, overhead_bytes)]


def end_of_text(padded: Slices, overhead_bytes: int) -> int:
    """Return where the text ends that was padded, or raise `PaddingError` if `pad` could not have made this."""
    smaller = _NEXT_SMALLER.get(len(padded) + overhead_bytes)
    if smaller is None:
        raise PaddingError("malformed padding")
    least = max(0, smaller - overhead_bytes)  # or a smaller frame would do
    end = content_end(padded[least:])
    if end is None:
        raise PaddingError("malformed padding")
    return least + end


def content_end(padded: bytes) -> int | None:
    """Return where the marker byte is, behind which only zeros follow; None if there is no such place.

    To find the marker and to compare what follows takes a tenth of the time of `rstrip`, which goes byte by byte.
    """
    end = padded.rfind(_MARKER)
    return None if end < 0 or padded[end + 1 :] != bytes(len(padded) - end - 1) else end
