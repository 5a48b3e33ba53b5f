from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_aead_chacha20poly1305_ietf_decrypt,
    crypto_aead_chacha20poly1305_ietf_encrypt,
    crypto_box_easy_afternm,
    crypto_box_open_easy_afternm,
)

from p2pdp.crypto.boxes import box, large_box, large_unbox, unbox

KEYS, NONCES = st.binary(min_size=32, max_size=32), st.binary(min_size=24, max_size=24)


def _opened(data: bytes, nonce: bytes, key: bytes) -> object:
    return unbox(data, 0, nonce, key)


def _large_opened(data: bytes, nonce: bytes, key: bytes) -> object:
    return large_unbox(data, 0, nonce, key)


@given(text=st.binary(max_size=5000), nonce=NONCES, key=KEYS)
def test_they_are_those_of_libsodium(text: bytes, nonce: bytes, key: bytes) -> None:
    boxed = box(text, nonce, key)
    assert boxed == crypto_box_easy_afternm(text, nonce, key)
    assert unbox(boxed, 0, nonce, key)[:] == crypto_box_open_easy_afternm(boxed, nonce, key) == text


@given(
    before=st.binary(max_size=40),
    more=st.sampled_from([0, 4079, 4080, 4096, 5000, 2**20 - 16, 2**20]),
    nonce=NONCES,
    key=KEYS,
)
def test_large_ones_are_the_same(before: bytes, more: int, nonce: bytes, key: bytes) -> None:
    texts = [before + bytes(more), bytes(more) + before]
    behind = [box(text, nonce, key, before) for text in texts]
    for text, found in zip(texts, behind, strict=True):
        assert found == before + box(text, nonce, key)
        opened = unbox(found, len(before), nonce, key)
        assert (opened[:], opened[3:9], len(opened)) == (text, text[3:9], len(text))


@pytest.mark.parametrize("size", [0, 100, 5000, 2**20, 2**20 + 1])
def test_large_ones_that_were_changed_or_cut_are_not_opened(size: int) -> None:
    boxed = bytearray(box(bytes(size), bytes(24), bytes(32)))
    assert unbox(bytes(boxed[:-1]), 0, bytes(24), bytes(32)) is None
    assert unbox(bytes(boxed), 1, bytes(24), bytes(32)) is None
    boxed[-1] ^= 1
    for at in (0, -1, len(boxed) - 15, len(boxed), len(boxed) + 1):
        assert unbox(bytes(boxed), at, bytes(24), bytes(32)) is None


@given(text=st.binary(max_size=300), nonce=NONCES, key=KEYS, at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_what_was_changed_or_cut_is_not_opened(text: bytes, nonce: bytes, key: bytes, at: int, bit: int) -> None:
    boxed = bytearray(box(text, nonce, key))
    cut = bytes(boxed[: at % len(boxed)])
    boxed[at % len(boxed)] ^= 1 << bit
    assert unbox(bytes(boxed), 0, nonce, key) is None
    assert unbox(cut, 0, nonce, key) is None
    assert unbox(b"", 0, nonce, key) is None


@pytest.mark.parametrize(("nonce_bytes", "key_bytes"), [(23, 32), (25, 32), (0, 32), (24, 31), (24, 33), (24, 0)])
def test_no_more_is_read_than_there_is(nonce_bytes: int, key_bytes: int) -> None:
    nonce, key = bytes(nonce_bytes), bytes(key_bytes)
    for call in (box, _opened, large_box, _large_opened):
        with pytest.raises(ValueError, match="24 bytes"):
            call(bytes(100), nonce, key)


@pytest.mark.parametrize("wrong", [None, "text" * 9, 5, memoryview(bytes(64))])
def test_texts_are_bytes(wrong: object) -> None:
    for call in (box, _opened):
        with pytest.raises(TypeError):
            call(wrong, bytes(24), bytes(32))  # type: ignore[arg-type]


@given(before=st.binary(max_size=40), text=st.binary(max_size=5000), nonce=NONCES, key=KEYS)
def test_large_boxes_are_those_of_another_library(before: bytes, text: bytes, nonce: bytes, key: bytes) -> None:
    own = blake2b(nonce, key=key, digest_size=32, person=b"p2pdp large box").digest()
    boxed = large_box(text, nonce, key, before)
    assert boxed == before + crypto_aead_chacha20poly1305_ietf_encrypt(text, None, bytes(12), own)
    assert large_unbox(boxed, len(before), nonce, key) == text
    assert crypto_aead_chacha20poly1305_ietf_decrypt(boxed[len(before) :], None, bytes(12), own) == text
    assert len(boxed) == len(box(text, nonce, key, before))


def test_a_large_box_is_known() -> None:
    boxed = large_box(b"text", bytes(range(24)), bytes(range(32)))
    assert boxed.hex() == "9f09de12b698d8df2636fe55cd10d751bf40e42a"


@given(text=st.binary(max_size=300), nonce=NONCES, key=KEYS, at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_large_boxes_that_were_changed_or_cut_are_not_opened(
    text: bytes, nonce: bytes, key: bytes, at: int, bit: int
) -> None:
    boxed = bytearray(large_box(text, nonce, key))
    cut = bytes(boxed[: at % len(boxed)])
    boxed[at % len(boxed)] ^= 1 << bit
    for data in (bytes(boxed), cut, b"", box(text, nonce, key)):
        assert large_unbox(data, 0, nonce, key) is None
    other = nonce[:-1] + bytes((nonce[-1] ^ 1,))
    assert large_unbox(large_box(text, nonce, key), 0, other, key) is None
    assert large_box(text, other, key) != large_box(text, nonce, key)
