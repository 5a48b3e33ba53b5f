from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import (
    ADDRESS,
    BOXED,
    ENROL,
    FRAME_HEADER_BYTES,
    HELLO,
    OFFER,
    PREFIX_BYTES,
    ROSTER,
    Frame,
    FrameReader,
    Kind,
    decode_frame,
    encode_frame,
    prefix,
)
from p2pdp.wire.padding import FRAME_BYTES_MAX
from tests.support.known import cuts, flips, known, names

SENDERS = st.integers(-2, (1 << 31) - 1)
FRAMES = st.builds(encode_frame, st.sampled_from(Kind), SENDERS, st.binary(max_size=40))


def test_the_kinds_are_those_of_the_format() -> None:
    assert (BOXED, HELLO, OFFER, ENROL, ROSTER, ADDRESS) == tuple(Kind) == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("row", known("wire_frames"), ids=names("wire_frames"))
def test_known_answers(row: dict[str, Any]) -> None:
    data, body = bytes.fromhex(row["frame"]), bytes.fromhex(row["body"])
    assert encode_frame(Kind(row["kind"]), row["sender"], body) == data
    assert decode_frame(data) == Frame(Kind(row["kind"]), row["sender"], body)
    assert decode_frame(data).kind is Kind(row["kind"])
    assert prefix(data).hex() == row["prefixed"]


@pytest.mark.parametrize("row", known("wire_bad_frames"), ids=names("wire_bad_frames"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    with pytest.raises(CodecError):
        decode_frame(bytes.fromhex(row["frame"]))


@given(st.sampled_from(Kind), SENDERS, st.binary(max_size=300))
def test_frames_come_back(kind: Kind, sender: int, body: bytes) -> None:
    assert decode_frame(encode_frame(kind, sender, body)) == (kind, sender, body)


def test_each_header_cut_short_or_turned_is_seen() -> None:
    data = encode_frame(BOXED, 5, b"")
    for cut in cuts(data):
        with pytest.raises(CodecError):
            decode_frame(cut)
    seen = 0
    for flipped in flips(data):
        try:
            assert decode_frame(flipped) != decode_frame(data)
        except CodecError:
            seen += 1
    assert seen >= 8  # at least each bit of the version


def test_a_frame_has_a_largest_size() -> None:
    body = bytes(FRAME_BYTES_MAX - FRAME_HEADER_BYTES)
    assert decode_frame(encode_frame(BOXED, 0, body)).body == body
    with pytest.raises(CodecError):
        decode_frame(encode_frame(BOXED, 0, body + b"\0"))


def test_a_frame_does_not_show_its_sender_or_body() -> None:
    assert repr(Frame(BOXED, 77, b"secret")) == "Frame(BOXED, 6 bytes)"


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(0, 300), max_size=12))
def test_a_stream_gives_the_same_frames_however_it_is_cut(frames: list[bytes], places: list[int]) -> None:
    stream = b"".join(map(prefix, frames))
    ends = sorted({min(place, len(stream)) for place in places} | {len(stream)})
    reader, got, start = FrameReader(), [], 0
    for end in ends:
        got += reader.feed(stream[start:end])
        start = end
    assert got == frames
    assert reader.pending_bytes == 0


def test_a_stream_may_come_a_byte_at_a_time_or_in_two_parts() -> None:
    frames = [encode_frame(BOXED, 3, b"abc"), encode_frame(HELLO, -1, b""), encode_frame(OFFER, 0, bytes(300))]
    stream = b"".join(map(prefix, frames))
    reader = FrameReader()
    assert [frame for at in range(len(stream)) for frame in reader.feed(stream[at : at + 1])] == frames
    for at in range(len(stream) + 1):
        reader = FrameReader()
        assert reader.feed(stream[:at]) + reader.feed(stream[at:]) == frames
    reader = FrameReader()
    assert reader.feed(stream + b"\0\0") == frames
    assert reader.pending_bytes == 2
    assert all(type(frame) is bytes for frame in FrameReader().feed(stream))


@given(st.lists(st.integers(6, 80_000), max_size=4), st.lists(st.integers(1, 60_000), max_size=12))
def test_large_frames_are_the_same_however_they_are_cut(sizes: list[int], steps: list[int]) -> None:
    frames = [encode_frame(BOXED, number, bytes([number]) * (size - 6)) for number, size in enumerate(sizes)]
    stream, reader, got, start = b"".join(map(prefix, frames)), FrameReader(), [], 0
    for step in (*steps, len(stream) + 1):
        got += reader.feed(stream[start : start + step])
        start += step
        assert reader.pending_bytes == min(start, len(stream)) - sum(PREFIX_BYTES + len(frame) for frame in got)
    assert got == frames
    assert all(type(frame) is bytes for frame in got)


def test_bytes_that_come_one_by_one_take_no_memory_each() -> None:
    stream, reader = prefix(encode_frame(BOXED, 0, bytes(100_000))), FrameReader()
    for at in range(90_000):
        reader.feed(stream[at : at + 1])
    assert (reader.pending_bytes, len(reader._chunks)) == (90_000, 6)


@pytest.mark.parametrize("length", ["00000000", "00000005", "01000001", "ffffffff"])
@pytest.mark.parametrize("before", [b"", prefix(encode_frame(BOXED, 0, b"a"))])
def test_an_impossible_length_is_refused_at_once_and_for_good(length: str, before: bytes) -> None:
    reader = FrameReader()
    stream = before + bytes.fromhex(length)
    for at in range(len(stream) - 1):
        reader.feed(stream[at : at + 1])
    with pytest.raises(CodecError):
        reader.feed(stream[-1:])
    assert reader.pending_bytes == 0
    with pytest.raises(CodecError):
        reader.feed(prefix(encode_frame(BOXED, 0, b"a")))
    assert reader.pending_bytes == 0
    with pytest.raises(CodecError):
        FrameReader().feed(stream + bytes(1000))


def test_a_reader_may_have_a_smaller_maximum() -> None:
    frame = encode_frame(HELLO, 0, bytes(250))
    assert FrameReader(len(frame)).feed(prefix(frame)) == [frame]
    with pytest.raises(CodecError):
        FrameReader(len(frame) - 1).feed(prefix(frame)[:4])


def test_the_largest_frame_passes_in_chunks() -> None:
    frame = encode_frame(BOXED, 0, bytes(FRAME_BYTES_MAX - FRAME_HEADER_BYTES))
    stream, reader, got = prefix(frame), FrameReader(), []
    for start in range(0, len(stream), 1 << 20):
        got += reader.feed(stream[start : start + (1 << 20)])
    assert got == [frame]
