from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.addresses import AddressError, join_address
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.crypto.addresses import COUNTER_MAX, Statement, read_statement, sign_statement, statement_frame
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, encode_frame
from p2pdp.wire.padding import FRAME_SIZES, pad
from tests.support.known import cuts, flips
from tests.support.toys import RUN_ID, identity, roster

ROSTER = roster(3)
HOSTS = st.one_of(
    st.sampled_from(["localhost", "10.66.0.2", "::1", "fe80::1%eth0", "node-3.example.org"]),
    st.from_regex(r"[a-z0-9.-]{1,60}", fullmatch=True),
)


def statement(user: int = 1, counter: int = 7, address: str = "10.0.0.1:7000", run_id: bytes = RUN_ID) -> Statement:
    return sign_statement(identity(user), run_id, user, counter, address)


@given(st.integers(0, 2), st.integers(0, COUNTER_MAX), HOSTS, st.integers(1, 65535))
def test_statements_come_back_in_frames_of_the_fixed_sizes(user: int, counter: int, host: str, port: int) -> None:
    made = statement(user, counter, join_address(host, port))
    frame = statement_frame(made)
    assert len(frame) in FRAME_SIZES
    assert read_statement(frame, ROSTER) == made


def test_nobody_else_can_have_made_a_statement() -> None:
    good = statement()
    for forged in (
        sign_statement(identity(2), RUN_ID, 1, 7, good.address),
        statement(run_id=bytes(16)),
        Statement(2, good.counter, good.address, good.signature),
        Statement(1, good.counter + 1, good.address, good.signature),
        Statement(1, good.counter, "10.0.0.2:7000", good.signature),
        Statement(1, good.counter, good.address, b"short"),
        sign_statement(identity(3), RUN_ID, 3, 7, good.address),  # the roster has no user 3
        sign_statement(identity(BOOTSTRAP), RUN_ID, BOOTSTRAP, 7, good.address),
        statement(address="10.0.0.1:0"),
        statement(address="nowhere"),
    ):
        with pytest.raises(AddressError):
            read_statement(statement_frame(forged), ROSTER)


def test_damage_anywhere_is_seen() -> None:
    frame = statement_frame(statement())
    for data in [*flips(frame), *cuts(frame), frame + b"\0"]:
        with pytest.raises(AddressError):
            read_statement(data, ROSTER)


@pytest.mark.parametrize(
    "body", [b"", b"\x93\x01\xa1a\xc4\x00", b"\x93\x01\x01\x01", b"\x01", b"\x93\xff\xa3a:1\xc4\x00"]
)
def test_other_forms_are_malformed(body: bytes) -> None:
    for kind in (Kind.ADDRESS, Kind.BOXED):
        with pytest.raises(AddressError):
            read_statement(encode_frame(kind, 1, pad(body, FRAME_HEADER_BYTES)), ROSTER)


def test_another_kind_of_frame_holds_no_statement() -> None:
    frame = bytearray(statement_frame(statement()))
    frame[1] = Kind.HELLO
    with pytest.raises(AddressError):
        read_statement(bytes(frame), ROSTER)
