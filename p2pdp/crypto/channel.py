"""The encrypted channel between two peers: boxes with what their keys of this run have in common.

A body is a random 24-byte nonce and the box of: context ‖ sender ‖ receiver ‖ payload ‖ padding. In frames of up to
16 KiB that is a NaCl box, in larger ones `boxes.large_box`. The context holds, literally, the format version, the run
id and the digests of the roster and of the spec, so two nodes that bootstrap gave different rosters or specs find out
with their first frame. Both directions use one shared key; the sender and the receiver are inside, so a frame that is
sent back is refused.

Guarantee: `open` returns what the other end sealed for us in this run, or raises `ChannelError` whose kind says what
was wrong. A frame with one of our bodies has one of `FRAME_SIZES`. The part of the context that differs is named only
for authentic frames, so an outsider learns nothing by trying.

The caller owes: nonces that never repeat (`crypto.entropy`), and everything about order. A channel accepts the same
frame as often as it comes: the sequence number is the first part of the payload and belongs to the link. Sealing what
no frame can hold raises `wire.padding.FrameTooLarge`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from nacl.exceptions import CryptoError

from p2pdp.crypto.boxes import MAC_BYTES, box, large_box, large_unbox, unbox
from p2pdp.crypto.entropy import NONCE_BYTES
from p2pdp.wire.frames import FRAME_HEADER_BYTES
from p2pdp.wire.padding import FRAME_SIZES, PaddingError, end_of_text, pad, pad_all

if TYPE_CHECKING:
    from p2pdp.core.ids import Peer
    from p2pdp.crypto.identity import RunKey

_PEER_BYTES: Final = 4
_OUTER_BYTES: Final = FRAME_HEADER_BYTES + NONCE_BYTES + MAC_BYTES

# The context from its start: where each part ends, and what is wrong when it differs.
_CONTEXT_PARTS: Final = (
    (1, "foreign_version"),
    (17, "foreign_run"),
    (49, "foreign_roster"),
    (81, "foreign_spec"),
)
CONTEXT_BYTES: Final = _CONTEXT_PARTS[-1][0]
_SENDER_END: Final = CONTEXT_BYTES + _PEER_BYTES
_HEADER_BYTES: Final = _SENDER_END + _PEER_BYTES
# The smallest frame is by far the most frequent: what `pad` makes of what fits into it, in one step.
_SMALLEST_BYTES: Final = FRAME_SIZES[0] - _OUTER_BYTES
_LARGE_BYTES: Final = 4096  # from here on it pays to copy a value once only
NACL_FRAME_BYTES_MAX: Final = FRAME_SIZES[3]  # larger frames hold boxes for large texts
_BOXED_MAX: Final = NACL_FRAME_BYTES_MAX - _OUTER_BYTES
_MARKER: Final = 0x80
_ROOM: Final = b"\x80" + bytes(_SMALLEST_BYTES)
_BOX_AT: Final = FRAME_HEADER_BYTES + NONCE_BYTES
_BODY_SIZES: Final = frozenset(size - FRAME_HEADER_BYTES for size in FRAME_SIZES)


class ChannelError(Exception):
    """A body of a peer that cannot be accepted; `kind` becomes that of the fault.

    The kinds are truncated (not of the size of any frame), not_authentic, foreign_version, foreign_run,
    foreign_roster, foreign_spec, foreign_sender, foreign_receiver, bad_padding, and weak_key (the
    peer's key of this run gives no secret; `crypto.roster` refuses such entries before).
    """

    def __init__(self, kind: str) -> None:
        """Keep the kind."""
        super().__init__(kind)
        self.kind = kind


def context_bytes(version: int, run_id: bytes, roster_digest: bytes, spec_digest: bytes) -> bytes:
    """Put together what both ends of every channel of a run must agree on."""
    context = bytes([version]) + run_id + roster_digest + spec_digest
    if len(run_id) != 16 or len(roster_digest) != 32 or len(spec_digest) != 32:
        raise ValueError("a run id has 16 bytes, and the digests of roster and spec have 32 each")
    return context


def _header(context: bytes, sender: Peer, receiver: Peer) -> bytes:
    numbers = (number.to_bytes(_PEER_BYTES, "big", signed=True) for number in (sender, receiver))
    return context + b"".join(numbers)


class Channel:
    """One end of the connection between two peers in one run."""

    __slots__ = ("_expected", "_header", "_mine", "_shared", "_theirs")

    def __init__(self, mine: RunKey, theirs_box: bytes, context: bytes, me: Peer, peer: Peer) -> None:
        """Keep the keys; what they share is computed on first use."""
        if len(context) != CONTEXT_BYTES:
            raise ValueError("a channel's context is made by `context_bytes`")
        self._mine = mine
        self._theirs = theirs_box
        self._header = _header(context, me, peer)
        self._expected = _header(context, peer, me)
        self._shared = b""

    def __repr__(self) -> str:
        return "Channel()"

    def agree(self) -> bytes:
        """Compute what both ends share, if that is not done yet; a key that gives no secret is named here."""
        if self._shared:
            return self._shared
        try:
            self._shared = self._mine.agree(self._theirs)
        except CryptoError as error:
            raise ChannelError("weak_key") from error
        return self._shared

    @property
    def pair_secret(self) -> bytes:
        """Return what only both ends know, for whatever they have to agree on in this run."""
        context = self._header[:CONTEXT_BYTES]
        return blake2b(context, key=self._shared or self.agree(), person=b"p2pdp pair").digest()

    def seal(self, payload: bytes, nonce: bytes) -> bytes:
        """Make the body of a boxed frame."""
        content = self._header + payload
        if len(content) < _SMALLEST_BYTES:
            return box((content + _ROOM)[:_SMALLEST_BYTES], nonce, self._shared or self.agree(), nonce)
        return self._boxed(pad(content, _OUTER_BYTES), nonce, nonce)

    def sealed(self, before: bytes, nonce: bytes, payload: bytes, value: bytes | memoryview) -> bytes:
        """Return a whole frame that begins with these bytes; its payload goes on with a value, however large."""
        if len(value) < _LARGE_BYTES:
            return before + self.seal(payload + value, nonce)
        padded = pad_all((self._header, payload, value), _OUTER_BYTES)
        return self._boxed(padded, nonce, before + nonce)

    def _boxed(self, padded: bytes, nonce: bytes, before: bytes) -> bytes:
        boxed = box if len(padded) <= _BOXED_MAX else large_box
        return boxed(padded, nonce, self._shared or self.agree(), before)

    def open_smallest(self, frame: bytes) -> bytes | None:
        """Return the payload of a whole frame of the smallest size, or None where `open` says what is wrong.

        For what comes often. The secret must have been computed.
        """
        found = unbox(frame, _BOX_AT, frame[FRAME_HEADER_BYTES:_BOX_AT], self._shared)
        if found is None:
            return None
        padded: bytes = found[:]
        content = padded.rstrip(b"\0")
        if not padded.startswith(self._expected) or content[-1] != _MARKER or len(content) <= _HEADER_BYTES:
            return None
        return content[_HEADER_BYTES:-1]

    def open(self, body: bytes, at: int = 0) -> bytes:
        """Return the payload of a body that the peer sealed for us, and that begins at this place of the bytes."""
        if len(body) - at not in _BODY_SIZES:
            raise ChannelError("truncated")
        shared, boxed_at = self._shared or self.agree(), at + NONCE_BYTES
        opened = unbox if len(body) - boxed_at - MAC_BYTES <= _BOXED_MAX else large_unbox
        padded = opened(body, boxed_at, body[at:boxed_at], shared)
        if padded is None:
            raise ChannelError("not_authentic")
        if padded[:_HEADER_BYTES] != self._expected:
            raise ChannelError(self._difference(padded[:_HEADER_BYTES]))
        try:
            end = end_of_text(padded, _OUTER_BYTES)
        except PaddingError as error:
            raise ChannelError("bad_padding") from error
        if end < _HEADER_BYTES:  # the header itself ended like padding
            raise ChannelError("bad_padding")
        content: bytes = padded[_HEADER_BYTES:end]
        return content

    def _difference(self, padded: bytes) -> str:
        for end, kind in (*_CONTEXT_PARTS, (_SENDER_END, "foreign_sender")):
            if padded[:end] != self._expected[:end]:
                return kind
        return "foreign_receiver"
