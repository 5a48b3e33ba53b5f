from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_scalarmult

from p2pdp.crypto.identity import (
    Identity,
    RunKey,
    sign_labelled,
    verify,
    verify_labelled,
)
from tests.support.known import cuts, flips, known, names

SEED = bytes(range(32))
PARTS = st.lists(st.binary(max_size=5), max_size=4)


@pytest.mark.parametrize("row", known("crypto_identity"), ids=names("crypto_identity"))
def test_known_answers(row: dict[str, Any]) -> None:
    identity = Identity(bytes.fromhex(row["seed"]))
    assert identity.public.hex() == row["public"]
    if "label" in row:
        parts = [bytes.fromhex(part) for part in row["parts"]]
        assert sign_labelled(identity, row["label"], *parts).hex() == row["signature"]
        assert verify_labelled(identity.public, bytes.fromhex(row["signature"]), row["label"], *parts)
        assert verify(identity.public, bytes.fromhex(row["digest"]), bytes.fromhex(row["signature"]))
    else:
        message = bytes.fromhex(row["message"])
        assert identity.sign(message).hex() == row["signature"]
        assert verify(identity.public, message, bytes.fromhex(row["signature"]))


@pytest.mark.parametrize("row", known("crypto_run_keys"), ids=names("crypto_run_keys"))
def test_known_run_keys(row: dict[str, Any]) -> None:
    alice, bob = RunKey(bytes.fromhex(row["alice"])), RunKey(bytes.fromhex(row["bob"]))
    assert (alice.public.hex(), bob.public.hex()) == (row["alice_public"], row["bob_public"])
    assert crypto_scalarmult(alice.secret, bob.public).hex() == row["shared"]
    assert crypto_scalarmult(bob.secret, alice.public).hex() == row["shared"]


@given(st.binary(max_size=100))
def test_signatures_verify(message: bytes) -> None:
    identity = Identity(SEED)
    assert verify(identity.public, message, identity.sign(message))
    assert not verify(identity.public, message + b"\0", identity.sign(message))


def test_each_turned_bit_and_each_cut_is_refused() -> None:
    identity, message = Identity(SEED), b"head"
    signature = identity.sign(message)
    for flipped in flips(signature):
        assert not verify(identity.public, message, flipped)
    for flipped in flips(message):
        assert not verify(identity.public, flipped, signature)
    for flipped in flips(identity.public):
        assert not verify(flipped, message, signature)
    for cut in (*cuts(signature), signature + b"\0"):
        assert not verify(identity.public, message, cut)
    for cut in (*cuts(identity.public), identity.public + b"\0"):
        assert not verify(cut, message, signature)


@given(st.text(max_size=5), PARTS, st.text(max_size=5), PARTS)
def test_a_labelled_signature_counts_for_its_label_and_parts_only(
    label: str, parts: list[bytes], other_label: str, other_parts: list[bytes]
) -> None:
    identity = Identity(SEED)
    signature = sign_labelled(identity, label, *parts)
    assert verify_labelled(identity.public, signature, label, *parts)
    same = (label, parts) == (other_label, other_parts)
    assert verify_labelled(identity.public, signature, other_label, *other_parts) is same


def test_moving_a_boundary_makes_another_signature() -> None:
    identity = Identity(SEED)
    signature = sign_labelled(identity, "a", b"bc", b"d")
    for label, parts in [("a", (b"b", b"cd")), ("ab", (b"c", b"d")), ("a", (b"bcd",)), ("a", (b"bc", b"d", b""))]:
        assert not verify_labelled(identity.public, signature, label, *parts)


def test_secrets_come_back_from_bytes_and_are_not_shown() -> None:
    for kind in (Identity, RunKey):
        key = kind(SEED)
        assert key.to_bytes() == SEED
        assert kind(key.to_bytes()).public == key.public
        assert key.public.hex() in repr(key)
        assert SEED.hex() not in repr(key)
        assert not hasattr(key, "__dict__")


@pytest.mark.parametrize("kind", [Identity, RunKey])
@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_secrets_of_other_lengths_are_refused(kind: Any, length: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes, not from {length}"):
        kind(bytes(length))
