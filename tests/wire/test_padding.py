from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.wire.padding import (
    FRAME_BYTES_MAX,
    FRAME_SIZES,
    FrameTooLarge,
    PaddingError,
    content_end,
    end_of_text,
    frame_size,
    pad,
    unpad,
)
from tests.support.known import known, names

MIB = 1 << 20


def test_the_sizes_are_those_of_the_format() -> None:
    assert FRAME_SIZES[:6] == (256, 1024, 4096, 16384, 18432, 20480)
    assert {65536, 262144, MIB, 4 * MIB, 16 * MIB} < set(FRAME_SIZES)
    assert FRAME_BYTES_MAX == 16 * MIB


def test_a_large_frame_is_at_most_an_eighth_larger_than_the_next_smaller_one() -> None:
    large = [size for size in FRAME_SIZES if size >= 16384]
    assert all(one < other <= one * 9 / 8 for one, other in pairwise(large))


@pytest.mark.parametrize("row", known("wire_padding"), ids=names("wire_padding"))
def test_known_answers(row: dict[str, Any]) -> None:
    text, padded = bytes.fromhex(row["text"]), bytes.fromhex(row["padded"])
    assert pad(text, row["overhead"]) == padded
    assert unpad(padded, row["overhead"]) == text


@pytest.mark.parametrize("row", known("wire_bad_padding"), ids=names("wire_bad_padding"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    with pytest.raises(PaddingError):
        unpad(bytes.fromhex(row["padded"]), row["overhead"])


@given(st.binary(max_size=5000), st.binary(max_size=3), st.integers(0, 300))
def test_what_is_padded_comes_back_and_has_a_frame_size(text: bytes, ending: bytes, overhead: int) -> None:
    for plain in (text, text + b"\0" * len(ending), text + b"\x80" * len(ending)):
        padded = pad(plain, overhead)
        assert len(padded) + overhead in FRAME_SIZES
        assert unpad(padded, overhead) == plain
        assert len(padded) + overhead == min(size for size in FRAME_SIZES if size > len(plain) + overhead)


@given(st.binary(max_size=1200), st.integers(0, 300))
def test_unpad_takes_only_what_pad_makes(padded: bytes, overhead: int) -> None:
    try:
        text = unpad(padded, overhead)
    except PaddingError:
        return
    assert pad(text, overhead) == padded


@given(st.lists(st.sampled_from([b"\0", b"\x80", b"\1", bytes(9)]), max_size=12).map(b"".join))
def test_content_ends_where_the_last_marker_has_only_zeros_behind_it(padded: bytes) -> None:
    stripped = padded.rstrip(b"\0")
    assert content_end(padded) == (len(stripped) - 1 if stripped.endswith(b"\x80") else None)


@given(
    st.lists(st.sampled_from([b"\0", b"\x80", b"\1", bytes(9), bytes(190), bytes(700)]), max_size=20).map(b"".join),
    st.sampled_from([0, 1, 46, 255, 256, 300]),
    st.sampled_from(FRAME_SIZES[:6]),
)
def test_the_end_is_looked_for_only_where_it_may_be(text: bytes, overhead: int, size: int) -> None:
    padded = text[: max(0, size - overhead)].ljust(size - overhead, b"\0")
    end, smaller = content_end(padded), max((one for one in FRAME_SIZES if one < size), default=0)
    fits = end is not None and len(padded) + overhead == size and end + 1 + overhead > smaller
    if fits:
        assert end_of_text(padded, overhead) == end
    else:
        with pytest.raises(PaddingError):
            end_of_text(padded, overhead)


def test_every_size_holds_what_it_should() -> None:
    for size in FRAME_SIZES:
        assert frame_size(size) == size
        assert frame_size(size - 1) == size
    assert frame_size(0) == FRAME_SIZES[0]
    assert len(pad(bytes(FRAME_BYTES_MAX - 1), 0)) == FRAME_BYTES_MAX


def test_what_no_frame_holds_is_the_users_mistake() -> None:
    assert issubclass(FrameTooLarge, UsageError)
    with pytest.raises(FrameTooLarge, match="fewer columns or categories"):
        pad(bytes(FRAME_BYTES_MAX), 0)


def test_a_peer_cannot_cause_a_usage_error() -> None:
    for padded in (bytes(FRAME_BYTES_MAX) + b"\x80", b"\x80" + bytes(4 * FRAME_BYTES_MAX - 1)):
        with pytest.raises(PaddingError):
            unpad(padded, 0)
