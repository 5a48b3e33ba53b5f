from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.identity import Identity
from p2pdp.crypto.vouchers import (
    NO_VOUCHER,
    NUMBER_BYTES,
    START,
    VOUCHER_BYTES,
    Stamp,
    digest_after,
    pack_numbers,
    received_in,
    voucher_key,
)
from p2pdp.ledger.records import digest_of
from tests.support.known import flips

ME, OTHER = Identity(bytes([1] * 32)), Identity(bytes([2] * 32))
KEY = voucher_key(ME, b"a run")
COUNTS = st.integers(0, 2 ** (8 * NUMBER_BYTES) - 1)
DIGESTS = st.binary(min_size=16, max_size=16)


def made(stamp: Stamp, sent: int, received: int, digest: bytes) -> bytes:
    numbers = pack_numbers(sent, received)
    return numbers[NUMBER_BYTES:] + stamp.tag(numbers, digest)


@given(COUNTS, COUNTS, DIGESTS)
def test_a_voucher_fits_what_it_was_made_for(sent: int, received: int, digest: bytes) -> None:
    stamp = Stamp(KEY, 3)
    voucher = made(stamp, sent, received, digest)
    assert len(voucher) == VOUCHER_BYTES
    assert received_in(voucher) == received
    assert Stamp(KEY, 3).fits(sent, digest, voucher)


@given(COUNTS, COUNTS, DIGESTS, COUNTS, DIGESTS)
def test_it_fits_nothing_else(sent: int, received: int, digest: bytes, other: int, more: bytes) -> None:
    stamp = Stamp(KEY, 3)
    voucher = made(stamp, sent, received, digest)
    assert stamp.fits(other, digest, voucher) is (other == sent)
    assert stamp.fits(sent, more, voucher) is (more == digest)
    assert stamp.fits(sent, digest, pack_numbers(0, other)[NUMBER_BYTES:] + voucher[NUMBER_BYTES:]) is (
        other == received
    )


def test_it_is_for_one_receiver_of_one_sender_in_one_run() -> None:
    voucher = made(Stamp(KEY, 3), 5, 6, START)
    for receiver in (-2, -1, 0, 2, 4, 3 << 8):
        assert not Stamp(KEY, receiver).fits(5, START, voucher)
    for identity, context in ((ME, b"another run"), (OTHER, b"a run")):
        assert not Stamp(voucher_key(identity, context), 3).fits(5, START, voucher)
    assert voucher_key(Identity(bytes([1] * 32)), b"a run") == KEY, "a restart has the same key"


def test_no_altered_voucher_fits() -> None:
    voucher = made(Stamp(KEY, 3), 5, 6, START)
    assert not any(Stamp(KEY, 3).fits(5, START, other) for other in flips(voucher))
    assert not Stamp(KEY, 3).fits(0, START, NO_VOUCHER)


@pytest.mark.parametrize("sent", [-1, 2**32, 2**64, 2**200, -(2**200)])
def test_numbers_that_cannot_be_packed_fit_nothing(sent: int) -> None:
    assert not Stamp(KEY, 3).fits(sent, START, NO_VOUCHER)


@given(st.binary(max_size=40), st.binary(max_size=30))
def test_bytes_of_another_length_fit_nothing(voucher: bytes, digest: bytes) -> None:
    assert not Stamp(KEY, 3).fits(5, digest, voucher)


@given(*[st.binary(max_size=40)] * 4)
def test_a_running_digest_knows_where_a_message_ends(first: bytes, value: bytes, second: bytes, other: bytes) -> None:
    same = digest_after(START, first, digest_of(value)) == digest_after(START, second, digest_of(other))
    assert same == ((first, value) == (second, other))


def test_a_stamp_shows_no_key() -> None:
    assert KEY.hex() not in repr(Stamp(KEY, 3))
    assert repr(Stamp(KEY, 3)) == "Stamp()"
