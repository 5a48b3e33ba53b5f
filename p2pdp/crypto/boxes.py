"""Boxes with a shared key: libsodium's, called without what PyNaCl's own functions do around each call.

These put together texts of errors and keyword arguments whether or not they are needed, which takes as long as a box of
the smallest frame. What has to be right here is that texts are bytes and that nonce and key have their lengths, since
libsodium reads so many.

Guarantee: `box` makes what `nacl.bindings.crypto_box_easy_afternm` makes; `unbox` returns what was boxed with this
nonce and key, or None.
"""

from __future__ import annotations

from typing import Final

from nacl._sodium import ffi, lib  # type: ignore[import-not-found]

from p2pdp.crypto.entropy import NONCE_BYTES

MAC_BYTES: Final = 16
_KEY_BYTES: Final = 32
_BYTES: Final = ffi.typeof("unsigned char[]")
_new, _buffer = ffi.new, ffi.buffer
_box, _unbox = lib.crypto_box_easy_afternm, lib.crypto_box_open_easy_afternm


def box(text: bytes, nonce: bytes, key: bytes) -> bytes:
    size = len(text)
    if len(nonce) != NONCE_BYTES or len(key) != _KEY_BYTES:
        raise ValueError("a nonce has 24 bytes, and a shared key has 32")
    out = _new(_BYTES, size + MAC_BYTES)
    if _box(out, text, size, nonce, key) != 0:
        raise ValueError("the text is too long for a box")
    boxed: bytes = _buffer(out)[:]
    return boxed


def unbox(boxed: bytes, nonce: bytes, key: bytes) -> bytes | None:
    size = len(boxed)
    if len(nonce) != NONCE_BYTES or len(key) != _KEY_BYTES:
        raise ValueError("a nonce has 24 bytes, and a shared key has 32")
    if size < MAC_BYTES:
        return None
    out = _new(_BYTES, size - MAC_BYTES)
    if _unbox(out, boxed, size, nonce, key) != 0:
        return None
    text: bytes = _buffer(out)[:]
    return text
