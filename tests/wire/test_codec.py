from __future__ import annotations

import sys
from contextlib import suppress
from struct import pack as struct_pack
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.arrays import in_steps
from p2pdp.core.step import Message
from p2pdp.wire.codec import (
    DEPTH_MAX,
    ITEMS_MAX,
    CodecError,
    pack,
    pack_behind,
    pack_message,
    pack_value,
    unpack,
    unpack_message,
    unpack_value,
)
from tests.support.known import cuts, flips, known, names

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.one_of(st.integers(-(1 << 63), (1 << 64) - 1), st.text(), st.binary(), FINITE)
FIELDS = st.lists(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4), max_leaves=12), max_size=6)
ARRAYS = st.one_of(
    st.lists(INT64).map(lambda items: np.array(items, dtype=np.int64)),
    st.lists(FINITE).map(lambda items: np.array(items, dtype=np.float64)),
)
SINGLE = st.one_of(st.none(), INT64, FINITE, st.binary(), ARRAYS)
VALUES = st.one_of(SINGLE, st.lists(SINGLE, max_size=5))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def nested(lists: int) -> bytes:
    return b"\x91" * (lists - 1) + b"\x90"


@pytest.mark.parametrize("row", known("wire_messages"), ids=names("wire_messages"))
def test_known_messages(row: dict[str, Any]) -> None:
    message = Message(row["type"], tuple(row["fields"]), row["value"])
    public, value = bytes.fromhex(row["public"]), bytes.fromhex(row["packed_value"])
    assert pack_message(message) == public
    assert pack_value(message.value) == value
    assert unpack_message(public, value) == message


@pytest.mark.parametrize("row", known("wire_bad_messages"), ids=names("wire_bad_messages"))
def test_known_bad_messages(row: dict[str, Any]) -> None:
    with pytest.raises(CodecError):
        unpack_message(bytes.fromhex(row["public"]), bytes.fromhex(row["value"]))


@pytest.mark.parametrize("row", known("wire_values"), ids=names("wire_values"))
def test_known_values(row: dict[str, Any]) -> None:
    value, packed = row["value"], bytes.fromhex(row["packed"])
    if row["kind"] == "bytes":
        value = bytes.fromhex(value)
    elif row["kind"] in {"int64", "float64"}:
        value = np.array(value, dtype=row["kind"])
    assert pack_value(value) == packed
    assert same(unpack_value(packed), value)


@pytest.mark.parametrize("row", known("wire_bad_values"), ids=names("wire_bad_values"))
def test_known_bad_values(row: dict[str, Any]) -> None:
    with pytest.raises(CodecError):
        unpack_value(bytes.fromhex(row["packed"]))


@given(FIELDS, VALUES)
def test_messages_come_back(fields: list[Any], value: Any) -> None:
    message = Message("token", tuple(fields), value)
    public, packed = pack_message(message), pack_value(value)
    again = unpack_message(public, packed)
    assert again.type == "token"
    assert same(list(again.fields), fields)
    assert same(again.value, value)
    assert (pack_message(again), pack_value(again.value)) == (public, packed)


def test_tuples_inside_fields_come_back_as_lists() -> None:
    assert unpack_message(pack_message(Message("a", ((1, (2,)),))), b"").fields == ([1, [2]],)


def test_each_cut_and_each_tail_is_refused() -> None:
    public = pack_message(Message("token", (3, "text", b"bytes", 1.5, [1, [2]])))
    for cut in (*cuts(public), public + b"\0", public + public):
        with pytest.raises(CodecError):
            unpack_message(cut, b"")
    for value in (7, 0.5, [1, 2.0, np.array([1, 2]), b"a"]):
        packed = pack_value(value)
        for cut in (*list(cuts(packed))[1:], packed + b"\0"):
            with pytest.raises(CodecError):
                unpack_value(cut)


def test_each_turned_bit_gives_a_message_or_a_codec_error() -> None:
    public = pack_message(Message("token", (3, "text", b"bytes", 1.5, [1, [2]])))
    packed = pack_value([1, 2.0, np.array([1, 2]), np.array([0.5]), b"a", None])
    outcomes = {True: 0, False: 0}
    for one, other in [(flip, b"") for flip in flips(public)] + [(public, flip) for flip in flips(packed)]:
        try:
            again = unpack_message(one, other)
        except CodecError:
            outcomes[False] += 1
        else:  # whatever is accepted can be packed again: no type slips through
            unpack_message(pack_message(again), pack_value(again.value))
            outcomes[True] += 1
    assert min(outcomes.values()) > 0


@given(st.binary(max_size=3000))
def test_any_bytes_give_a_value_or_a_codec_error(data: bytes) -> None:
    for decode in (unpack, unpack_value, lambda public: unpack_message(public, b"")):
        with suppress(CodecError):
            decode(data)


@given(st.recursive(st.none() | st.booleans() | PLAIN, lambda inner: st.lists(inner, max_size=4), max_leaves=8))
def test_what_pack_takes_unpack_gives(obj: Any) -> None:
    assert same(unpack(pack(obj)), obj)


@pytest.mark.parametrize("length", [10, 2000])
def test_maps_and_extension_types_are_refused_at_any_size(length: int) -> None:
    for obj in ({}, {"a": 1}, msgpack.ExtType(5, b""), msgpack.ExtType(5, b"ab"), msgpack.Timestamp(1, 0)):
        packed = msgpack.packb([b"\0" * length, obj])
        with pytest.raises(CodecError):
            unpack(packed)
    with pytest.raises(CodecError):
        unpack(b"\x81\x90\x00")  # a map whose key is a list


def test_nesting_is_limited() -> None:
    assert unpack(nested(DEPTH_MAX)) is not None
    for lists in (DEPTH_MAX + 1, 600, 1000, 1100, 100_000):
        with pytest.raises(CodecError):
            unpack(nested(lists))
    head, inner = b"\x92\xa1t", DEPTH_MAX - 1
    assert unpack_message(head + nested(inner), b"").type == "t"
    for lists in (inner + 1, 990, 1500):
        with pytest.raises(CodecError):
            unpack_message(head + nested(lists), b"")


def test_a_long_list_comes_back() -> None:
    items = [0, -1, 200, -200, 70_000, -70_000, 1 << 40, -(1 << 40), 1.5, "a" * 40, "b" * 300, "c" * 70_000, b"d"]
    items += [b"e" * 300, b"f" * 70_000, None, True, False, [1, 2], list(range(20)), list(range(70_000)), (1 << 64) - 1]
    items.append(msgpack.unpackb(b"\xca\x3f\x80\x00\x00"))
    assert unpack(pack(items)) == items
    assert unpack(pack([*items, b"\xca"])) == [*items, b"\xca"]
    assert unpack(msgpack.packb([1.5] * 400, use_single_float=True)) == [1.5] * 400


def test_lists_that_claim_more_than_there_is_reserve_nothing() -> None:
    for data in (
        b"\xdd\xff\xff\xff\xff" * 1000,
        (b"\xdd" + struct_pack(">I", 4000)) * 1000,
        b"\xdc\xff\xff" * 400,
        b"\x9f" * 2000,
    ):
        with pytest.raises(CodecError, match="too many items"):
            unpack(data)
    long = ITEMS_MAX + 1
    with pytest.raises(CodecError, match="too many items"):
        unpack(b"\xdd" + struct_pack(">I", long) + bytes(long))
    with pytest.raises(CodecError, match="too many items"):
        unpack_value(b"\x06" + struct_pack("<I", long) + bytes(4 * long))


@pytest.mark.parametrize("field", [None, True, {}, {1}, object(), np.float64(1.5), np.int64(1), [None], float("nan")])
def test_fields_of_other_types_are_not_packed(field: Any) -> None:
    with pytest.raises(TypeError):
        pack_message(Message("a", (field,)))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (np.array([1.0, np.nan]), ValueError),
        (1 << 63, OverflowError),
        (-(1 << 63) - 1, OverflowError),
        (np.uint64((1 << 64) - 1), OverflowError),
        (True, TypeError),
        ("text", TypeError),
        ((1, 2), TypeError),
        ([[1]], TypeError),
        (np.array([[1]]), TypeError),
        (np.array(1), TypeError),
        (np.array([1], dtype=np.int32), TypeError),
        (np.array([1.0], dtype=np.float32), TypeError),
        (np.array([None]), TypeError),
    ],
)
def test_values_of_other_kinds_are_not_packed(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        pack_value(value)
    assert "9223372036854775808" not in str(raised.value)


def test_a_failed_pack_leaves_nothing_behind() -> None:
    for bad in ((1, 1 << 70), (1, "\ud800")):
        with pytest.raises((OverflowError, ValueError)):
            pack_message(Message("a", bad))
    assert pack_message(Message("go")) == bytes.fromhex("92a2676f90")


def test_numpy_numbers_and_slices_are_packed_as_plain_ones() -> None:
    assert pack_value(np.int64(-5)) == pack_value(-5)
    assert pack_value(np.float64(0.5)) == pack_value(0.5)
    assert pack_value(np.arange(10)[::2]) == pack_value(np.array([0, 2, 4, 6, 8]))


def test_unpacked_arrays_are_their_own() -> None:
    packed = pack_value(np.array([1, 2]))
    array = unpack_value(packed)
    array[0] = 5
    assert array.flags.aligned
    assert unpack_value(packed).tolist() == [1, 2]


def test_scalars_do_not_need_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    for value in (None, 1, 1.5, b"a", [1, 2.5, None, b"b"]):
        assert unpack_value(pack_value(value)) == value
    with pytest.raises(ImportError):
        unpack_value(b"\x04")


# Floats in steps of a grid


@pytest.mark.parametrize("exponent", [-900, -47, 0, 30, 900])
def test_floats_in_steps_take_five_bytes_each_and_come_back(exponent: int) -> None:
    steps = [0, 1, -1, 2**31, -(2**31), 2**32 - 1, -(2**32), 2**39 - 1, 1 - 2**39, 123456789012]
    values = np.array(steps) * 2.0**exponent
    for before in (b"", bytes(16)):
        packed = pack_behind(before, in_steps(values.copy(), exponent))
        assert packed.startswith(before)
        assert len(packed) == len(before) + 3 + 5 * len(steps)
        found = unpack_value(packed[len(before) :])
        assert type(found) is np.ndarray
        assert same(found, values)
        assert same(unpack_value(memoryview(packed)[len(before) :]), values)


def test_known_steps() -> None:
    assert pack_value(in_steps(np.array([1.5, -0.5]), -1)).hex() == "07ffff" + "03000000ffffffff" + "00ff"
    assert pack_value(in_steps(np.array([]), 3)).hex() == "070300"


def test_what_is_beyond_the_last_step_is_sent_as_that() -> None:
    found = unpack_value(pack_value(in_steps(np.array([1e30, -1e30, 2.0**38]), 0)))
    assert found.tolist() == [2.0**39 - 1, 1 - 2.0**39, 2.0**38]


@pytest.mark.parametrize("packed", ["07", "0700", "070000" + "00" * 4, "070000" + "00" * 6, "078503", "077bfc"])
def test_steps_of_other_lengths_and_exponents_are_refused(packed: str) -> None:
    with pytest.raises(CodecError):
        unpack_value(bytes.fromhex(packed))


def test_the_least_number_of_five_bytes_is_no_step() -> None:
    with pytest.raises(CodecError):
        unpack_value(bytes.fromhex("070000" + "00000000" + "80"))


def test_steps_that_have_no_place_are_our_own_mistake() -> None:
    for value, exponent in ((np.array([np.nan]), 0), (np.array([np.inf]), 0), (np.array([1.0]), 901)):
        with pytest.raises(ValueError, match="place in a message"):
            pack_value(in_steps(value, exponent))
