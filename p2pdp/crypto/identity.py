"""The permanent identity of a node (Ed25519), and the key pair it uses in one run (X25519).

Guarantee: a labelled signature counts for its label and its parts only. What is signed is a BLAKE2b digest of the label
and of each part, all with their lengths before them, so no two lists of parts have the same digest and a signature made
for one purpose proves nothing for another. `verify` returns False for anything that is not a valid signature, whatever
its length. Secrets are in no `repr`.

The caller owes: seeds are 32 secret bytes that were used for nothing else, and everything in p2pdp signs with
`sign_labelled`, which is made of the bare `sign`.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_scalarmult_base,
    crypto_sign,
    crypto_sign_open,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import CryptoError

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_DIGEST_BYTES: Final = 32
_LENGTH_BYTES: Final = 8


def _checked(secret: bytes, what: str) -> bytes:
    if len(secret) != KEY_BYTES:
        raise ValueError(f"{what} is made from {KEY_BYTES} bytes, not from {len(secret)}")
    return bytes(secret)


class Identity:
    """A signing key."""

    __slots__ = ("_secret", "public")

    def __init__(self, seed: bytes) -> None:
        """Derive the pair of keys from 32 secret bytes."""
        self.public: bytes
        self.public, self._secret = crypto_sign_seed_keypair(_checked(seed, "an identity"))

    def __repr__(self) -> str:
        return f"Identity({self.public.hex()})"

    def to_bytes(self) -> bytes:
        """Return the seed, for the one file that keeps it."""
        return self._secret[:KEY_BYTES]

    def sign(self, message: bytes) -> bytes:
        signed: bytes = crypto_sign(message, self._secret)
        return signed[:SIGNATURE_BYTES]


class RunKey:
    """The key pair of one node in one run."""

    __slots__ = ("public", "secret")

    def __init__(self, secret: bytes) -> None:
        """Derive the public key from 32 secret bytes."""
        self.secret = _checked(secret, "a run key")
        self.public: bytes = crypto_scalarmult_base(self.secret)

    def __repr__(self) -> str:
        return f"RunKey({self.public.hex()})"

    def to_bytes(self) -> bytes:
        """Return the secret, for the one file that keeps it until the run closes."""
        return self.secret

    def agree(self, theirs: bytes) -> bytes:
        """Return what the holder of this public key computes too; `CryptoError` if the key gives no secret."""
        shared: bytes = crypto_box_beforenm(theirs, self.secret)
        return shared


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether this key signed this message."""
    return len(public) == KEY_BYTES and len(signature) == SIGNATURE_BYTES and _is_signed(public, message, signature)


@lru_cache(maxsize=4096)  # many peers in one process ask about the same signatures
def _is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        crypto_sign_open(signature + message, public)
    except CryptoError:
        return False
    return True


def _labelled(label: str, parts: tuple[bytes, ...]) -> bytes:
    digest = blake2b(digest_size=_DIGEST_BYTES, person=b"p2pdp-sign")
    for part in (label.encode(), *parts):
        digest.update(len(part).to_bytes(_LENGTH_BYTES, "big"))
        digest.update(part)
    return digest.digest()


def sign_labelled(identity: Identity, label: str, *parts: bytes) -> bytes:
    """Sign the parts, in this order, for the purpose that the label names."""
    return identity.sign(_labelled(label, parts))


def verify_labelled(public: bytes, signature: bytes, label: str, *parts: bytes) -> bool:
    """Tell whether this key signed these parts for this purpose."""
    return verify(public, _labelled(label, parts), signature)
