"""Vouchers: what a peer has sent and received on a link, with a tag that nobody but this peer can make.

A peer keeps the last voucher that came from the other end. Whoever says that a peer forgot something shows that peer's
own voucher, and the peer computes the tag again: it needs no memory for that, and believes nobody who has none. The
holder cannot check a tag, nor can it make one.

A tag covers the receiver, a number of messages sent to it with their running digest, and the number of messages that
had come from it. Where only the latter is said, the number sent is 0 and the digest that of nothing.

When its ledger is closed, its owner names the key there. From then on anybody can check the vouchers that others have
on record: a tag that fits was made by the owner, or by somebody who knew the key, and so after the owner's ledger was
closed. A tag that does not fit proves nothing, since the owner may have sent a false one.

The running digest is over messages and the digests of their value parts, so it follows from a skeleton too.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final

from p2pdp.crypto.identity import sign_labelled

if TYPE_CHECKING:
    from p2pdp.core.ids import Peer
    from p2pdp.crypto.identity import Identity

KEY_BYTES: Final = 32
DIGEST_BYTES: Final = 16
TAG_BYTES: Final = 12
NUMBER_BYTES: Final = 4  # a run has far fewer messages than that counts
VOUCHER_BYTES: Final = NUMBER_BYTES + TAG_BYTES  # how many messages had come, then the tag
START: Final = bytes(DIGEST_BYTES)  # the running digest of no message
NO_VOUCHER: Final = bytes(VOUCHER_BYTES)  # in its place, so that all hellos have frames of one size
_KEY_LABEL: Final = "p2pdp voucher key"
_NUMBER_MAX: Final = (1 << (8 * NUMBER_BYTES)) - 1
_length: Final = Struct(">I").pack
pack_numbers: Final = Struct(">II").pack
begin_digest: Final = blake2b(digest_size=DIGEST_BYTES).copy  # a copy takes no arguments to be sorted out


def voucher_key(identity: Identity, context: bytes) -> bytes:
    """Return the key of a peer's vouchers in one run: the digest of a signature that is never sent."""
    return blake2b(
        sign_labelled(identity, _KEY_LABEL, context), digest_size=KEY_BYTES, person=b"p2pdp vouchers"
    ).digest()


def digest_after(digest: bytes, message: bytes, value_digest: bytes) -> bytes:
    """Return the running digest after one more message, of whose value part the digest is given."""
    state = begin_digest()
    state.update(digest + _length(len(message)) + message + value_digest)
    return state.digest()


class Stamp:
    """Makes and checks the vouchers that one peer gives to another."""

    __slots__ = ("begin",)

    def __init__(self, key: bytes, receiver: Peer) -> None:
        begun = blake2b(receiver.to_bytes(4, "big", signed=True), key=key, digest_size=TAG_BYTES)
        self.begin = begun.copy  # returns a state that takes numbers and digest

    def __repr__(self) -> str:
        return "Stamp()"

    def tag(self, numbers: bytes, digest: bytes) -> bytes:
        """Return the tag over packed numbers, sent and received, and the running digest of what was sent."""
        state = self.begin()
        state.update(numbers + digest)
        return state.digest()

    def fits(self, sent: int, digest: bytes, voucher: bytes) -> bool:
        """Return whether a voucher was made with this stamp, for so many messages sent with this running digest."""
        if not 0 <= sent <= _NUMBER_MAX or len(voucher) != VOUCHER_BYTES or len(digest) != DIGEST_BYTES:
            return False
        numbers = sent.to_bytes(NUMBER_BYTES, "big") + voucher[:NUMBER_BYTES]
        return self.tag(numbers, digest) == voucher[NUMBER_BYTES:]


def received_in(voucher: bytes) -> int:
    """Return how many messages its maker had received."""
    return int.from_bytes(voucher[:NUMBER_BYTES], "big")
