"""Boxes with a shared key: libsodium's, called without what PyNaCl's own functions do around each call.

These put together texts of errors and keyword arguments whether or not they are needed, which takes as long as a box of
the smallest frame. What has to be right here is that texts are bytes and that nonce and key have their lengths, since
libsodium reads so many.

Large texts are boxed by OpenSSL's ChaCha20-Poly1305 (RFC 8439), which takes half of the time that libsodium takes for
XSalsa20-Poly1305. Its nonces are too short to be drawn at random for many messages under one key. So each large box has
a key of its own, the keyed BLAKE2b digest of the nonce of 24 bytes, and the nonce of the cipher is zero.

Guarantee: `box` makes what `nacl.bindings.crypto_box_easy_afternm` makes; `unbox` returns what was boxed with this
nonce and key, or None; `large_box` and `large_unbox` are the same for large texts. All copy a text no more often than
they have to.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import Any, Final

from nacl._sodium import ffi, lib  # type: ignore[import-not-found]

from p2pdp.crypto.entropy import NONCE_BYTES

MAC_BYTES: Final = 16
_KEY_BYTES: Final = 32
_PERSON: Final = b"p2pdp large box"
_CIPHER_NONCE: Final = bytes(12)
_BYTES: Final = ffi.typeof("unsigned char[]")
_buffer, _at = ffi.buffer, ffi.from_buffer
_box, _unbox = lib.crypto_box_easy_afternm, lib.crypto_box_open_easy_afternm
_room: Final = ffi.new_allocator(should_clear_after_alloc=False)


def box(text: bytes, nonce: bytes, key: bytes, before: bytes = b"") -> bytes:
    """Return the box of a text, behind other bytes."""
    size = len(text)
    if len(nonce) != NONCE_BYTES or len(key) != _KEY_BYTES:
        raise ValueError("a nonce has 24 bytes, and a shared key has 32")
    out = _room(_BYTES, size + MAC_BYTES)
    if _box(out, text, size, nonce, key) != 0:
        raise ValueError("the text is too long for a box")
    boxed: bytes = before + _buffer(out)  # copied once
    return boxed


def unbox(data: bytes, at: int, nonce: bytes, key: bytes) -> Any:
    """Return what is in the box that begins at this place, or None: a buffer whose slices are bytes."""
    size = len(data) - at
    if type(data) is not bytes:
        raise TypeError("a box is bytes")
    if len(nonce) != NONCE_BYTES or len(key) != _KEY_BYTES:
        raise ValueError("a nonce has 24 bytes, and a shared key has 32")
    if at < 0 or size < MAC_BYTES:
        return None
    out = _room(_BYTES, size - MAC_BYTES)
    if _unbox(out, _at(_BYTES, data) + at, size, nonce, key) != 0:
        return None
    return _buffer(out)


def large_box(text: bytes, nonce: bytes, key: bytes, before: bytes = b"") -> bytes:
    """Return the box of a large text, behind other bytes."""
    made, _ = _openssl()
    return b"".join((before, made(_own_key(nonce, key)).encrypt(_CIPHER_NONCE, text, None)))


def large_unbox(data: bytes, at: int, nonce: bytes, key: bytes) -> bytes | None:
    """Return what is in the large box that begins at this place, or None."""
    made, invalid_tag = _openssl()
    try:
        found: bytes = made(_own_key(nonce, key)).decrypt(_CIPHER_NONCE, memoryview(data)[at:], None)
    except invalid_tag:
        return None
    return found


def _own_key(nonce: bytes, key: bytes) -> bytes:
    """Return the key of one large box."""
    if len(nonce) != NONCE_BYTES or len(key) != _KEY_BYTES:
        raise ValueError("a nonce has 24 bytes, and a shared key has 32")
    return blake2b(nonce, digest_size=_KEY_BYTES, key=key, person=_PERSON).digest()


@cache
def _openssl() -> tuple[Any, type[Exception]]:
    """Return the cipher, and what it raises for a box that is not authentic. Who has no large values needs neither."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305, InvalidTag
