from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_box_easy_afternm, crypto_box_open_easy_afternm

from p2pdp.crypto.boxes import box, unbox

KEYS, NONCES = st.binary(min_size=32, max_size=32), st.binary(min_size=24, max_size=24)


@given(text=st.binary(max_size=5000), nonce=NONCES, key=KEYS)
def test_they_are_those_of_libsodium(text: bytes, nonce: bytes, key: bytes) -> None:
    boxed = box(text, nonce, key)
    assert boxed == crypto_box_easy_afternm(text, nonce, key)
    assert unbox(boxed, nonce, key) == crypto_box_open_easy_afternm(boxed, nonce, key) == text


@given(text=st.binary(max_size=300), nonce=NONCES, key=KEYS, at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_what_was_changed_or_cut_is_not_opened(text: bytes, nonce: bytes, key: bytes, at: int, bit: int) -> None:
    boxed = bytearray(box(text, nonce, key))
    cut = bytes(boxed[: at % len(boxed)])
    boxed[at % len(boxed)] ^= 1 << bit
    assert unbox(bytes(boxed), nonce, key) is None
    assert unbox(cut, nonce, key) is None
    assert unbox(b"", nonce, key) is None


@pytest.mark.parametrize(("nonce_bytes", "key_bytes"), [(23, 32), (25, 32), (0, 32), (24, 31), (24, 33), (24, 0)])
def test_no_more_is_read_than_there_is(nonce_bytes: int, key_bytes: int) -> None:
    for call in (box, unbox):
        with pytest.raises(ValueError, match="24 bytes"):
            call(bytes(100), bytes(nonce_bytes), bytes(key_bytes))


@pytest.mark.parametrize("wrong", [None, "text" * 9, 5, memoryview(bytes(64))])
def test_texts_are_bytes(wrong: object) -> None:
    for call in (box, unbox):
        with pytest.raises(TypeError):
            call(wrong, bytes(24), bytes(32))  # type: ignore[arg-type]
