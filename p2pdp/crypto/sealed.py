"""A box that only one key opens and that does not say who closed it: shuffle reports, enrolment.

It is the sealed box of libsodium: an ephemeral public key, then the box between it and the receiver's key, with the
BLAKE2b digest of both public keys for a nonce. The only departure is that the ephemeral key is an argument, so that a
seeded simulation has the same bytes each time.

Guarantee: `open_sealed` returns what was sealed to this key, or raises `SealError`. The sender is not authenticated,
and lengths are not hidden.

The caller owes: an ephemeral seed is 32 secret fresh bytes and serves once, since two texts sealed with one seed to one
key share key and nonce.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from nacl.bindings import crypto_box_beforenm, crypto_box_easy_afternm, crypto_box_open_easy_afternm
from nacl.exceptions import CryptoError

from p2pdp.crypto.entropy import NONCE_BYTES
from p2pdp.crypto.identity import KEY_BYTES, RunKey

SEAL_BYTES: Final = KEY_BYTES + 16


class SealError(Exception):
    """Bytes of a peer that are not sealed to this key, or a key that nothing can be sealed to."""


def _nonce(ephemeral: bytes, receiver: bytes) -> bytes:
    return blake2b(ephemeral + receiver, digest_size=NONCE_BYTES).digest()


def seal_to(box_public: bytes, plaintext: bytes, ephemeral_seed: bytes) -> bytes:
    """Seal a text, lengthened by `SEAL_BYTES`, to the holder of a key."""
    ephemeral = RunKey(ephemeral_seed)
    try:
        shared = crypto_box_beforenm(box_public, ephemeral.secret)
    except CryptoError as error:
        raise SealError("the public key is not valid: nothing can be sealed to it") from error
    sealed: bytes = crypto_box_easy_afternm(plaintext, _nonce(ephemeral.public, box_public), shared)
    return ephemeral.public + sealed


def open_sealed(run_key: RunKey, ciphertext: bytes) -> bytes:
    """Return the text that was sealed to this key."""
    ephemeral, boxed = ciphertext[:KEY_BYTES], ciphertext[KEY_BYTES:]
    try:
        shared = crypto_box_beforenm(ephemeral, run_key.secret)
        text: bytes = crypto_box_open_easy_afternm(boxed, _nonce(ephemeral, run_key.public), shared)
    except CryptoError as error:
        raise SealError("the text was not sealed to this key") from error
    return text
