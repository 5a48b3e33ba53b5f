from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.transports.mqtt.packets import (
    CALL_BYTES,
    PACKET_BYTES_MAX,
    Act,
    Packet,
    PacketError,
    packet_head,
    read_packet,
)
from p2pdp.wire.padding import FRAME_BYTES_MAX

CALL = bytes(range(CALL_BYTES))
NAME = b"node-0003"


@given(
    st.sampled_from(Act),
    st.binary(min_size=CALL_BYTES, max_size=CALL_BYTES),
    st.integers(-2, 1 << 30),
    st.text("az09.-_@", min_size=1, max_size=64),
    st.booleans(),
    st.binary(min_size=1, max_size=300),
)
def test_what_is_written_is_read(
    act: Act, call: bytes, called: int, station: str, from_caller: bool, frame: bytes
) -> None:
    body = frame if act is Act.FRAME else b""
    head = packet_head(act, call, called, station.encode(), from_caller=from_caller)
    assert read_packet(head + body) == Packet(act, from_caller, call, called, station, body)


def test_heads_of_a_station_have_one_length() -> None:
    heads = [
        packet_head(act, CALL, called, NAME, from_caller=one) for act in Act for called in (-2, 9) for one in (0, 1)
    ]
    assert len(set(map(len, heads))) == 1


FRAME = packet_head(Act.FRAME, CALL, 3, NAME, from_caller=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage" * 10,
        FRAME,
        FRAME[:-1],
        packet_head(Act.CALL, CALL, 3, NAME, from_caller=True) + b"x",
        b"\x02" + FRAME[1:] + b"x",
        FRAME[:1] + b"\x06" + FRAME[2:] + b"x",
        packet_head(Act.FRAME, CALL, 3, b"a/b", from_caller=True) + b"x",
        packet_head(Act.FRAME, CALL, 3, b"+", from_caller=True) + b"x",
        packet_head(Act.FRAME, CALL, 3, b"", from_caller=True) + b"x",
        packet_head(Act.FRAME, CALL, 3, b"\xff", from_caller=True) + b"x",
        packet_head(Act.FRAME, CALL, 3, b"x" * 65, from_caller=True) + b"x",
        FRAME + bytes(PACKET_BYTES_MAX - len(FRAME) + 1),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(PacketError):
        read_packet(data)


@given(st.binary(max_size=200))
def test_bytes_of_a_stranger_never_raise_anything_else(data: bytes) -> None:
    try:
        read_packet(data)
    except PacketError:
        return


def test_the_largest_frame_fits_and_a_packet_tells_no_route() -> None:
    packet = read_packet(FRAME + bytes(FRAME_BYTES_MAX))
    assert len(packet.frame) == FRAME_BYTES_MAX
    assert "node" not in repr(packet)
    assert "3" not in repr(packet).replace(str(FRAME_BYTES_MAX), "")
