from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import Message
from p2pdp.peer.link import Hello
from p2pdp.peer.payloads import CONTROL, DATA, DATA_HEAD, HEAD, POKE, RESEND, parse_payload, read_message
from p2pdp.wire.codec import CodecError, pack, pack_message, pack_value
from tests.support.known import cuts
from tests.support.toys import link_to

MESSAGES = [(b"first", b""), (b"second", b"value")]


def test_a_payload_comes_back_whole() -> None:
    link = link_to(1)
    for message, value in MESSAGES:
        link.push(message, value)
    link.took(b"a", b"b")
    payload = parse_payload(link.data(link.in_flight[1]))
    assert (payload.flags, payload.number, payload.acknowledged) == (DATA, 2, 1)
    assert (payload.message, payload.value) == MESSAGES[1]
    control = parse_payload(link.control(RESEND | POKE, link.hello(b"question")))
    assert (control.flags, control.number, control.acknowledged) == (CONTROL | RESEND | POKE, 0, 1)
    assert Hello.unpacked(control.hello) == link.hello(b"question")


def test_a_cut_payload_is_malformed_or_a_shorter_value() -> None:
    link = link_to(1)
    item = link.push(b"message", b"value")
    for cut in cuts(link.data(item)):
        if len(cut) < DATA_HEAD.size + len(b"message"):
            with pytest.raises(CodecError):
                parse_payload(cut)
        else:
            assert parse_payload(cut).message == b"message"
    for cut in cuts(link.control(POKE, link.hello(b"question"))):
        with pytest.raises(CodecError):
            parse_payload(cut)


@pytest.mark.parametrize("flags", [0, DATA | CONTROL, DATA | RESEND, DATA | POKE, RESEND, POKE, 16, CONTROL | 128, 255])
def test_flags_that_no_host_sets_are_malformed(flags: int) -> None:
    for tail in (pack([]), bytes(4), b""):
        with pytest.raises(CodecError):
            parse_payload(HEAD.pack(flags, 0, 0, bytes(16)) + tail)


def test_data_has_a_number_and_control_has_none() -> None:
    with pytest.raises(CodecError):
        parse_payload(DATA_HEAD.pack(DATA, 0, 0, bytes(16), 0))
    with pytest.raises(CodecError):
        parse_payload(HEAD.pack(CONTROL, 1, 0, bytes(16)) + pack([]))


@pytest.mark.parametrize("control", [None, 3, "ab", b"", 1.5])
def test_a_control_body_of_another_form_is_malformed(control: object) -> None:
    with pytest.raises(CodecError):
        parse_payload(HEAD.pack(CONTROL, 0, 0, bytes(16)) + pack(control))


SALT = bytes(16)


def test_a_value_comes_with_its_salt_and_a_salt_with_its_value() -> None:
    packed, value = pack_message(Message("m")), pack_value(5)
    assert read_message(packed, SALT + value) == Message("m", (), 5)
    assert read_message(packed, b"") == Message("m")
    for part in (value, SALT[1:] + value, SALT, SALT[1:]):
        assert read_message(packed, part) is None


def test_cut_messages_and_values_are_none() -> None:
    packed, value = pack_message(Message("token", (1, 2))), pack_value(5)
    assert all(read_message(cut, SALT + value) is None for cut in cuts(packed))
    assert all(read_message(packed, SALT + cut) is None for cut in cuts(value))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_payload_or_malformed(data: bytes) -> None:
    try:
        parse_payload(data)
    except CodecError:
        return
