from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_box_beforenm

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto import identity as identities
from p2pdp.crypto.boxes import large_unbox, unbox
from p2pdp.crypto.channel import CONTEXT_BYTES, Channel, ChannelError, context_bytes
from p2pdp.crypto.identity import RunKey
from p2pdp.wire.frames import BOXED, encode_frame
from p2pdp.wire.padding import FRAME_BYTES_MAX, FRAME_SIZES, FrameTooLarge
from tests.support.known import cuts, flips, known, names

ALICE, BOB = RunKey(bytes(range(32))), RunKey(bytes(range(100, 132)))
CONTEXT = context_bytes(1, bytes([1] * 16), bytes([2] * 32), bytes([3] * 32))
NONCE = bytes(24)
PEERS = st.one_of(st.sampled_from([BOOTSTRAP, CURATOR]), st.integers(0, (1 << 31) - 1))


def pair(me: int = 4, peer: int = 9, context: bytes = CONTEXT) -> tuple[Channel, Channel]:
    return Channel(ALICE, BOB.public, context, me, peer), Channel(BOB, ALICE.public, context, peer, me)


def kind_of(channel: Channel, body: bytes) -> str:
    with pytest.raises(ChannelError) as raised:
        channel.open(body)
    assert str(raised.value) == raised.value.kind
    return raised.value.kind


def ends(row: dict[str, Any]) -> tuple[Channel, Channel]:
    alice, bob = RunKey(bytes.fromhex(row["alice"])), RunKey(bytes.fromhex(row["bob"]))
    digests = [bytes.fromhex(row[part]) for part in ("run_id", "roster_digest", "spec_digest")]
    context = context_bytes(1, *digests)
    sender, receiver = row["sender"], row["receiver"]
    return Channel(alice, bob.public, context, sender, receiver), Channel(bob, alice.public, context, receiver, sender)


@pytest.mark.parametrize("row", known("crypto_channel"), ids=names("crypto_channel"))
def test_known_answers(row: dict[str, Any]) -> None:
    alice, bob = ends(row)
    payload, body = bytes.fromhex(row["payload"]), bytes.fromhex(row["body"])
    assert alice.seal(payload, bytes.fromhex(row["nonce"])) == body
    assert bob.open(body) == payload


@pytest.mark.parametrize("row", known("crypto_bad_channel"), ids=names("crypto_bad_channel"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    assert kind_of(ends(row)[1], bytes.fromhex(row["body"])) == row["kind"]


@given(st.binary(max_size=3000), st.binary(min_size=24, max_size=24), PEERS, PEERS)
def test_payloads_come_back_in_frames_of_few_sizes(payload: bytes, nonce: bytes, me: int, peer: int) -> None:
    alice, bob = pair(me, peer)
    body = alice.seal(payload, nonce)
    assert bob.open(body) == payload
    assert len(encode_frame(BOXED, me, body)) in FRAME_SIZES
    assert alice.open(bob.seal(payload, nonce)) == payload


def test_a_hop_fits_into_the_smallest_frame() -> None:
    alice, _ = pair()
    assert len(encode_frame(BOXED, 4, alice.seal(bytes(120), NONCE))) == 256
    assert len(encode_frame(BOXED, 4, alice.seal(bytes(121), NONCE))) == 1024


@pytest.mark.parametrize("size", FRAME_SIZES[:8])
def test_the_size_of_a_frame_says_how_it_is_boxed(size: int) -> None:
    alice, bob = pair()
    header, shared = encode_frame(BOXED, 4, b""), alice.agree()
    payload = bytes(size - 136)  # all but one byte of padding
    frame = alice.sealed(header, NONCE, payload[:30], payload[30:])
    assert (len(frame), bob.open(frame, 6)) == (size, payload)
    assert header + alice.seal(payload, NONCE) == frame
    opened = {is_large: how(frame, 30, NONCE, shared) for is_large, how in ((False, unbox), (True, large_unbox))}
    assert {is_large for is_large, found in opened.items() if found is not None} == {size > 16384}


def test_the_context_is_literally_inside() -> None:
    run_id, roster, spec = bytes([1] * 16), bytes([2] * 32), bytes([3] * 32)
    assert bytes([1]) + run_id + roster + spec == CONTEXT
    assert len(CONTEXT) == CONTEXT_BYTES == 81


def test_any_turned_bit_is_not_authentic() -> None:
    alice, bob = pair()
    body = alice.seal(b"payload", NONCE)
    assert {kind_of(bob, flipped) for flipped in flips(body)} == {"not_authentic"}


def test_any_cut_or_tail_is_refused() -> None:
    alice, bob = pair()
    body = alice.seal(bytes(300), NONCE)
    seen = {kind_of(bob, cut) for cut in cuts(body)}
    assert seen == {"truncated", "not_authentic"}  # one cut has the size of a smaller frame
    assert {kind_of(bob, body[:length]) for length in range(250)} == {"truncated"}
    assert kind_of(bob, body + b"\0") == "truncated"
    assert kind_of(bob, body + bytes(4096 - 1024)) == "not_authentic"


def test_a_frame_sent_back_is_refused() -> None:
    alice, bob = pair()
    assert kind_of(alice, alice.seal(b"mine", NONCE)) == "foreign_sender"
    assert kind_of(bob, bob.seal(b"mine", NONCE)) == "foreign_sender"


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ((2, bytes([1] * 16), bytes([2] * 32), bytes([3] * 32)), "foreign_version"),
        ((1, bytes([9] * 16), bytes([2] * 32), bytes([3] * 32)), "foreign_run"),
        ((1, bytes([1] * 16), bytes([9] * 32), bytes([3] * 32)), "foreign_roster"),
        ((1, bytes([1] * 16), bytes([2] * 32), bytes([9] * 32)), "foreign_spec"),
        ((1, bytes([9] * 16), bytes([9] * 32), bytes([9] * 32)), "foreign_run"),
    ],
)
def test_two_stories_are_found_out_by_either_end(part: tuple[int, bytes, bytes, bytes], kind: str) -> None:
    alice, _ = pair(context=context_bytes(*part))
    _, bob = pair()
    assert kind_of(bob, alice.seal(b"", NONCE)) == kind
    assert kind_of(alice, bob.seal(b"", NONCE)) == kind


def test_a_frame_for_another_number_of_ours_is_refused() -> None:
    alice, _ = pair(4, 9)
    assert kind_of(Channel(BOB, ALICE.public, CONTEXT, 10, 4), alice.seal(b"", NONCE)) == "foreign_receiver"
    assert kind_of(Channel(BOB, ALICE.public, CONTEXT, 9, 5), alice.seal(b"", NONCE)) == "foreign_sender"


def test_the_shared_key_is_computed_once_and_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def beforenm(public: bytes, secret: bytes) -> bytes:
        made.append(public)
        return bytes(crypto_box_beforenm(public, secret))

    monkeypatch.setattr(identities, "crypto_box_beforenm", beforenm)
    alice, bob = pair()
    assert kind_of(bob, b"") == "truncated"
    assert made == []
    for number in range(3):
        assert bob.open(alice.seal(bytes([number]), NONCE)) == bytes([number])
    assert made == [BOB.public, ALICE.public]


@pytest.mark.parametrize("key", [bytes(32), bytes([1]) + bytes(31), bytes(31), b""])
def test_a_key_that_gives_no_secret_is_named(key: bytes) -> None:
    alice, bob = pair()
    weak = Channel(ALICE, key, CONTEXT, 4, 9)
    assert kind_of(weak, bob.seal(b"", NONCE)) == "weak_key"
    with pytest.raises(ChannelError, match="weak_key"):
        weak.seal(b"", NONCE)
    assert bob.open(alice.seal(b"", NONCE)) == b""


def test_what_no_frame_holds_is_refused_before_it_is_sealed() -> None:
    alice, bob = pair()
    largest = bytes(FRAME_BYTES_MAX - 136)
    assert bob.open(alice.seal(largest, NONCE)) == largest
    with pytest.raises(FrameTooLarge):
        alice.seal(largest + b"\0", NONCE)


@pytest.mark.parametrize("lengths", [(15, 32, 32), (16, 31, 32), (16, 32, 33), (17, 31, 32)])
def test_contexts_of_other_lengths_are_our_own_mistake(lengths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="run id"):
        context_bytes(1, *map(bytes, lengths))
    with pytest.raises(ValueError, match="context_bytes"):
        Channel(ALICE, BOB.public, CONTEXT[:-1], 4, 9)


def test_both_ends_share_a_secret_of_this_run_that_is_not_their_key() -> None:
    mine, theirs = pair()
    assert mine.pair_secret == theirs.pair_secret == pair(9, 4)[0].pair_secret
    assert len(mine.pair_secret) == 64
    other = context_bytes(1, bytes([9] * 16), bytes(32), bytes(32))
    assert pair(context=other)[0].pair_secret != mine.pair_secret
    assert mine._shared not in mine.pair_secret


def test_nothing_of_a_channel_is_shown() -> None:
    alice, _ = pair()
    alice.seal(b"", NONCE)
    assert repr(alice) == "Channel()"
