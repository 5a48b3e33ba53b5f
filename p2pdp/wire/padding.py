"""Frames come in a few sizes, so that their length says next to nothing about their content.

Guarantee: whatever is padded here ends up, together with its overhead, in the smallest of `FRAME_SIZES`
that holds it, and `unpad` accepts exactly what `pad` makes: the content, one byte 0x80, zeros. The
marker byte makes it unambiguous for content that itself ends in zeros.

The caller owes: `overhead_bytes` is everything of the frame that is not the padded text (header, nonce,
authenticator), and the same number on both sides. Padding goes inside the encryption.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from p2pdp.core.errors import UsageError

FRAME_SIZES: Final[tuple[int, ...]] = tuple(256 << (2 * step) for step in range(9))
FRAME_BYTES_MAX: Final[int] = FRAME_SIZES[-1]

_MARKER: Final = b"\x80"


class FrameTooLarge(UsageError):
    """What is to be sent does not fit into the largest frame."""


class PaddingError(Exception):
    """Bytes of a peer that are no padded text."""


def frame_size(content_bytes: int) -> int:
    """Return the size of the smallest frame for so many bytes, marker and overhead included."""
    if content_bytes > FRAME_BYTES_MAX:
        raise FrameTooLarge(
            f"a message needs a frame of {content_bytes} bytes, and frames have at most {FRAME_BYTES_MAX}: "
            "use fewer columns or categories"
        )
    return FRAME_SIZES[bisect_left(FRAME_SIZES, content_bytes)]


def pad(plaintext: bytes, overhead_bytes: int) -> bytes:
    """Lengthen the text so that with its overhead it has one of the frame sizes."""
    content_bytes = len(plaintext) + 1 + overhead_bytes
    return plaintext + _MARKER + bytes(frame_size(content_bytes) - content_bytes)


def unpad(padded: bytes, overhead_bytes: int) -> bytes:
    """Return the text that was padded, or raise `PaddingError` if `pad` could not have made this."""
    size = len(padded) + overhead_bytes
    content = padded.rstrip(b"\0")
    if size not in FRAME_SIZES or content[-1:] != _MARKER or frame_size(len(content) + overhead_bytes) != size:
        raise PaddingError("malformed padding")
    return content[:-1]
