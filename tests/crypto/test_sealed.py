from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_box_seal, crypto_box_seal_open

from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed import SEAL_BYTES, SealError, open_sealed, seal_to
from tests.support.known import cuts, flips, known, names

KEY = RunKey(bytes(range(32)))


@pytest.mark.parametrize("row", known("crypto_sealed"), ids=names("crypto_sealed"))
def test_known_answers(row: dict[str, Any]) -> None:
    key, text, sealed = RunKey(bytes.fromhex(row["receiver"])), bytes.fromhex(row["text"]), bytes.fromhex(row["sealed"])
    assert seal_to(key.public, text, bytes.fromhex(row["ephemeral"])) == sealed
    assert open_sealed(key, sealed) == text


@pytest.mark.parametrize("row", known("crypto_bad_sealed"), ids=names("crypto_bad_sealed"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    with pytest.raises(SealError):
        open_sealed(RunKey(bytes.fromhex(row["receiver"])), bytes.fromhex(row["sealed"]))


@given(st.binary(max_size=200), st.binary(min_size=32, max_size=32))
def test_it_is_the_sealed_box_of_libsodium(text: bytes, seed: bytes) -> None:
    sealed = seal_to(KEY.public, text, seed)
    assert len(sealed) == len(text) + SEAL_BYTES
    assert crypto_box_seal_open(sealed, KEY.public, KEY.secret) == text
    assert open_sealed(KEY, crypto_box_seal(text, KEY.public)) == text
    assert open_sealed(KEY, sealed) == text


def test_any_turned_bit_cut_or_tail_is_refused() -> None:
    sealed = seal_to(KEY.public, b"report", bytes(32))
    # The top bit of an X25519 key is ignored when keys are agreed on, but not by the nonce.
    for damaged in (*flips(sealed), *cuts(sealed), sealed + b"\0"):
        with pytest.raises(SealError, match="not sealed to this key"):
            open_sealed(KEY, damaged)


@pytest.mark.parametrize("key", [bytes(32), bytes([1]) + bytes(31), bytes(31), b""])
def test_nothing_is_sealed_to_a_weak_key(key: bytes) -> None:
    with pytest.raises(SealError, match="key"):
        seal_to(key, b"report", bytes(32))
