"""MessagePack with hard limits, a form of its own for values, and messages made of both.

Guarantee: what `unpack`, `unpack_value` and `unpack_message` accept has no trailing byte, no map, no
extension type, no more than `DEPTH_MAX` nested lists and no more than `ITEMS_MAX` items, and memory
stays within a small multiple of the input's length, whatever lengths the input claims to hold.
Everything else raises `CodecError`, whose text never quotes the input.

The caller owes: a message that is malformed is the peer's mistake, so it catches `CodecError` and
records a fault. What one packs oneself must be of the named types and within the limits: a wrong type
raises `TypeError`, a number that is out of range or not finite `OverflowError` or `ValueError`.

A value has one encoding only: nothing at all for None, otherwise a tag byte and little-endian 64-bit
numbers. Floats that their sender has on a grid (`core.arrays.Steps`) are sent as steps of it, in five
bytes each: the exponent of the step, the low four bytes of each number, then the high ones. They come
back as floats. MessagePack proper allows several encodings of one number; bytes that are hashed or
signed are therefore kept as received and never encoded again.
"""

from __future__ import annotations

from functools import partial
from math import isfinite
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Never

import msgpack

from p2pdp.core.step import Message

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH_MAX: Final = 16
ITEMS_MAX: Final = 1 << 20
TYPE_CHARS_MAX: Final = 64

# MessagePack reserves room for as many items as a list claims to have, at each level of nesting. For an
# input this short that is harmless; a longer one is scanned before anything is reserved.
_UNSCANNED_BYTES_MAX: Final = 1024

TAG_INT: Final = 1
TAG_FLOAT: Final = 2
_TAG_BYTES: Final = 3
_TAG_INTS: Final = 4
_TAG_FLOATS: Final = 5
_TAG_LIST: Final = 6
_TAG_STEPS: Final = 7

TAGGED_INT: Final = Struct("<Bq")
TAGGED_FLOAT: Final = Struct("<Bd")
_LISTED_INT: Final = Struct("<IBq")
_LIST_HEAD: Final = Struct("<BI")
_LENGTH: Final = Struct("<I")
_STEPS_HEAD: Final = Struct("<Bh")  # tag, and exponent of the step
_NUMBER_BYTES: Final = 8
_STEP_BYTES: Final = 5
_STEPS_MAX: Final = (1 << 39) - 1
_EXPONENT_MAX: Final = 900  # with as many steps it is a float still
INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
_new: Final = tuple.__new__  # a named tuple takes its arguments through a function of Python
_PLAIN: Final = frozenset((int, str, bytes))
_SEQUENCES: Final = frozenset((list, tuple))
_VECTOR_TAGS: Final = frozenset((_TAG_INTS, _TAG_FLOATS))

# Tokens of a fixed size, and strings, byte strings and lists by the size of their length field.
_FIXED_BYTES: Final = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    **dict.fromkeys((0xCC, 0xD0), 1),
    **dict.fromkeys((0xCD, 0xD1), 2),
    **dict.fromkeys((0xCA, 0xCE, 0xD2), 4),
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 8),
}
_STRING_LENGTH_BYTES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_LIST_LENGTH_BYTES: Final = {0xDC: 2, 0xDD: 4}


class CodecError(Exception):
    """Bytes of a peer that do not follow the format."""


def _refuse(*_: object) -> Never:
    raise ValueError("a map or an extension type where none is allowed")


_parse: Final[Callable[..., Any]] = partial(msgpack.unpackb, max_ext_len=0, object_hook=_refuse, ext_hook=_refuse)
pack_public: Final[Callable[[object], bytes]] = msgpack.Packer(autoreset=True).pack


def pack(obj: Any) -> bytes:
    """Encode None, truth values, numbers, text, byte strings, and lists or tuples of these."""
    packed: bytes = msgpack.packb(obj)
    return packed


def unpack(data: bytes) -> Any:
    """Decode what `pack` made; tuples come back as lists."""
    obj = _parsed(data)
    if type(obj) is list and _deeper_than(obj, DEPTH_MAX - 1):
        raise CodecError("lists are nested too deeply")
    return obj


def _parsed(data: bytes) -> Any:
    if len(data) > _UNSCANNED_BYTES_MAX:
        _scan(data)
    try:
        return _parse(data, max_array_len=len(data))
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError("malformed MessagePack") from error


def _deeper_than(items: list[Any], levels: int) -> bool:
    for item in items:  # noqa: SIM110 -- a loop takes half the time of any()
        if type(item) is list and (levels == 0 or _deeper_than(item, levels - 1)):
            return True
    return False


def _scan(data: bytes) -> None:
    """Refuse an input whose lists claim more items than the input holds or than are allowed."""
    at, end, pending, items = 0, len(data), 1, 1
    while pending:
        if pending > end - at or items > ITEMS_MAX:
            raise CodecError("a list claims too many items")
        tag = data[at]
        at += 1
        pending -= 1
        if tag < 0x80 or tag >= 0xE0:
            continue
        if 0xA0 <= tag < 0xC0:
            at += tag & 0x1F
        elif 0x90 <= tag < 0xA0:
            pending += tag & 0x0F
            items += tag & 0x0F
        elif tag in _FIXED_BYTES:
            at += _FIXED_BYTES[tag]
        elif tag in _STRING_LENGTH_BYTES:
            size = _STRING_LENGTH_BYTES[tag]
            at += size + int.from_bytes(data[at : at + size], "big")
        elif tag in _LIST_LENGTH_BYTES:
            size = _LIST_LENGTH_BYTES[tag]
            count = int.from_bytes(data[at : at + size], "big")
            at += size
            pending += count
            items += count
        else:
            raise CodecError("a map or an extension type where none is allowed")


def pack_value(value: Any) -> bytes:
    """Encode what a message carries: None, a number, bytes, a vector of numbers, or a list of those."""
    kind = type(value)
    if value is None:
        return b""
    if kind is int:
        return TAGGED_INT.pack(TAG_INT, value) if INT_MIN <= value <= INT_MAX else _pack_int(value)
    if isinstance(value, float):  # numpy's float64 is one too
        if not isfinite(value):
            raise ValueError("a value is not finite")
        return TAGGED_FLOAT.pack(TAG_FLOAT, value)
    if kind is bytes:
        return bytes((_TAG_BYTES,)) + bytes(value)
    if kind is list:
        parts = [_LIST_HEAD.pack(_TAG_LIST, len(value))]
        for item in value:
            if type(item) is int and INT_MIN <= item <= INT_MAX:  # as in a pool of draws
                parts.append(_LISTED_INT.pack(TAGGED_INT.size, TAG_INT, item))
                continue
            if type(item) is list:
                raise TypeError("a value is a list of lists")
            packed = pack_value(item)
            parts += (_LENGTH.pack(len(packed)), packed)
        return b"".join(parts)
    return _pack_numpy(value)


def pack_behind(before: bytes, value: Any) -> bytes:
    """Encode a value that is not None behind other bytes; the numbers of a vector are copied once only."""
    return _pack_numpy(value, before) if getattr(value, "ndim", 0) else before + pack_value(value)


def _pack_int(value: int) -> bytes:
    if not INT_MIN <= value <= INT_MAX:
        raise OverflowError("a value does not fit into 64 bits")
    return TAGGED_INT.pack(TAG_INT, value)


def _pack_numpy(value: Any, before: bytes = b"") -> bytes:
    import numpy as np  # a message without a vector does not need it

    if isinstance(value, np.integer):
        return before + _pack_int(int(value))
    if hasattr(value, "exponent"):
        return _pack_steps(value, before)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        tag, kind = (_TAG_INTS, "<i8") if value.dtype == np.int64 else (_TAG_FLOATS, "<f8")
        if value.dtype == np.float64 and not np.isfinite(value).all():
            raise ValueError("a value is not finite")
        if value.dtype in (np.int64, np.float64):
            return b"".join((before, bytes((tag,)), np.ascontiguousarray(value, kind).data))
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


def _pack_steps(value: Any, before: bytes) -> bytes:
    """Encode floats in steps; what is beyond the largest number of steps is sent as that."""
    import numpy as np

    if not np.isfinite(value).all() or abs(value.exponent) > _EXPONENT_MAX:
        raise ValueError("a value is not finite, or its step has no place in a message")
    found = value.view(np.ndarray) * 2.0**-value.exponent
    np.rint(found, out=found)
    steps = np.clip(found, -_STEPS_MAX, _STEPS_MAX, out=found).astype("<i8")
    halves = steps.view("<i4").reshape(-1, 2)
    low, high = halves[:, 0].tobytes(), halves[:, 1].astype(np.int8).data
    return b"".join((before, _STEPS_HEAD.pack(_TAG_STEPS, value.exponent), low, high))


def _unpack_steps(data: bytes | memoryview) -> Any:
    import numpy as np

    _, exponent = _STEPS_HEAD.unpack_from(data)
    count, odd = divmod(len(data) - _STEPS_HEAD.size, _STEP_BYTES)
    if odd or abs(exponent) > _EXPONENT_MAX:
        raise CodecError("malformed value")
    steps = np.frombuffer(data, np.int8, count, offset=_STEPS_HEAD.size + 4 * count).astype(np.float64)
    steps *= 2.0**32
    steps += np.frombuffer(data, "<u4", count, offset=_STEPS_HEAD.size)  # floats hold all whole numbers of 40 bits
    if count and steps.min() < -_STEPS_MAX:
        raise CodecError("malformed value")
    steps *= 2.0**exponent  # in place: fresh memory costs more than the product
    return steps


def unpack_value(data: bytes | memoryview) -> Any:
    """Decode what `pack_value` made; vectors come back as arrays of their own that may be written to."""
    if not data:
        return None
    tag = data[0]
    if tag == TAG_INT and len(data) == TAGGED_INT.size:
        return TAGGED_INT.unpack(data)[1]
    if tag == TAG_FLOAT and len(data) == TAGGED_FLOAT.size:
        value = TAGGED_FLOAT.unpack(data)[1]
        if isfinite(value):
            return value
    elif tag == _TAG_BYTES:
        return bytes(data[1:])
    elif tag in _VECTOR_TAGS and len(data) % _NUMBER_BYTES == 1:
        return _unpack_numpy(data)
    elif tag == _TAG_LIST and len(data) >= _LIST_HEAD.size:
        return _unpack_list(data)
    elif tag == _TAG_STEPS and len(data) >= _STEPS_HEAD.size:
        return _unpack_steps(data)
    raise CodecError("malformed value")


def _unpack_numpy(data: bytes | memoryview) -> Any:
    import numpy as np  # a message without a vector does not need it

    if data[0] == _TAG_INTS:
        return np.frombuffer(data, "<i8", offset=1).astype(np.int64)
    values = np.frombuffer(data, "<f8", offset=1).astype(np.float64)
    if not np.isfinite(values).all():
        raise CodecError("a value is not finite")
    return values


def _unpack_list(data: bytes | memoryview) -> list[Any]:
    count = _LIST_HEAD.unpack_from(data)[1]
    at, end = _LIST_HEAD.size, len(data)
    if count > ITEMS_MAX or count * _LENGTH.size > end - at:
        raise CodecError("a list claims too many items")
    values = []
    for _ in range(count):
        start = at + _LENGTH.size
        if start > end:
            raise CodecError("a list is cut short")
        at = start + _LENGTH.unpack_from(data, at)[0]
        if at > end or (at > start and data[start] == _TAG_LIST):
            raise CodecError("a list is cut short or nested")
        values.append(unpack_value(data[start:at]))
    if at != end:
        raise CodecError("a list has a tail")
    return values


def _all_plain(items: list[Any] | tuple[Any, ...], levels: int) -> bool:
    for item in items:
        kind = type(item)
        if kind in _PLAIN:
            continue
        if kind is float:
            if not isfinite(item):
                return False
        elif kind not in _SEQUENCES or levels == 0 or not _all_plain(item, levels - 1):
            return False
    return True


def pack_message(message: Message) -> bytes:
    """Encode the public part: type and fields, of int, str, bytes, finite float and lists of these."""
    if not (_PLAIN.issuperset(map(type, message.fields)) or _all_plain(message.fields, DEPTH_MAX - 2)):
        raise TypeError(f"a field of message {message.type!r} is of no type that can be sent")
    return pack_public((message.type, message.fields))


def unpack_message(public: bytes, value: bytes | memoryview) -> Message:
    """Decode a message from its public part and its value; inner sequences come back as lists."""
    if len(public) > _UNSCANNED_BYTES_MAX:
        _scan(public)
    try:
        parts = _parse(public, max_array_len=len(public))
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError("malformed MessagePack") from error
    if type(parts) is not list or len(parts) != 2:
        raise CodecError("a message is not a pair of type and fields")
    kind, fields = parts
    if type(kind) is not str or not 0 < len(kind) <= TYPE_CHARS_MAX or type(fields) is not list:
        raise CodecError("a message has no type or no fields")
    if not (_PLAIN.issuperset(map(type, fields)) or _all_plain(fields, DEPTH_MAX - 2)):
        raise CodecError("a field of a message is of no type that can be sent")
    if len(value) == TAGGED_INT.size and value[0] == TAG_INT:  # what a walk's token carries
        return _new(Message, (kind, tuple(fields), TAGGED_INT.unpack(value)[1]))
    return _new(Message, (kind, tuple(fields), unpack_value(value)))
