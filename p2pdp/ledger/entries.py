"""The bytes of one entry of a ledger: its length, a checksum, and a MessagePack array of byte strings.

Guarantee: whoever reads gets the byte strings that were stored, or an error. A large value part that stands in an entry
twice is stored once: the later place has the number of the first among the entry's records.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from struct import Struct
from typing import Any, Final

import msgpack

from p2pdp.core.errors import VerificationFailed

RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
ENTRY_RECORDS_MAX: Final = 64
LARGE_BYTES: Final = 16 * 1024  # from here on value parts are not copied without need, and stored once
_ENTRY_PARTS_MAX: Final = 2 + ENTRY_RECORDS_MAX
ENVELOPE: Final = Struct(">II")  # length and checksum of an entry
_envelope: Final = ENVELOPE.pack
_crc32: Final = zlib.crc32
_ENTRY_OF: Final = Struct(">BH")  # how MessagePack begins an array of so many items
_ARRAY: Final = 0xDC
_LARGE_PART: Final = Struct(">BI")  # and a long byte string
_LONG_BYTES: Final = 0xC6
_BYTES: Final = frozenset({bytes})
_NO_ENTRY: Final = "not a record: expected at least three byte strings"

pack = msgpack.Packer(use_bin_type=True).pack


class LedgerError(VerificationFailed):
    """Bytes are not a ledger of this format. The text says where, and what is wrong."""


class DamagedLedger(LedgerError):
    """A ledger has bytes before its last entry that are none, which no crash leaves behind."""


def enveloped(content: bytes) -> bytes:
    """Return an entry as it is stored: behind its length and its checksum, which covers the length too."""
    return _envelope(len(content), _crc32(content, len(content))) + content


def large_entry(
    head: bytes, public: bytes, values: Collection[bytes | memoryview], digests: Collection[bytes]
) -> bytes:
    """Return an entry with large value parts, each of them copied once and stored once."""
    pieces = [_ENTRY_OF.pack(_ARRAY, 2 + len(values)), pack(head), pack(public)]
    first: dict[bytes, int] = {}
    for place, (value, digest) in enumerate(zip(values, digests, strict=True)):
        if len(value) < LARGE_BYTES:
            pieces.append(pack(value))
        elif first.setdefault(digest, place) < place:
            pieces.append(pack(first[digest]))
        else:
            pieces += (_LARGE_PART.pack(_LONG_BYTES, len(value)), value)
    length = sum(map(len, pieces))
    checksum = _crc32(b"", length)
    for piece in pieces:
        checksum = _crc32(piece, checksum)
    return b"".join((_envelope(length, checksum), *pieces))


def is_whole(content: bytes, length: int, checksum: int) -> bool:
    return len(content) == length and _crc32(content, length) == checksum


def content_at(data: bytes, at: int) -> bytes | None:
    """Return the content of the entry that begins here; None if there is no whole one."""
    start = at + ENVELOPE.size
    if start > len(data):
        return None
    length, checksum = ENVELOPE.unpack_from(data, at)
    if not length or start + length > len(data):
        return None
    content = data[start : start + length]
    return content if is_whole(content, length, checksum) else None


def parts_of(content: bytes) -> list[bytes]:
    try:
        item = msgpack.unpackb(
            content, raw=False, max_bin_len=RECORD_BYTES_MAX, max_array_len=_ENTRY_PARTS_MAX, max_map_len=0,
            max_str_len=0, max_ext_len=0,
        )  # fmt: skip
    except ValueError as error:
        raise LedgerError(f"not a record: {error}") from None
    if type(item) is not list or len(item) < 3:
        raise LedgerError(_NO_ENTRY)
    return item if _BYTES.issuperset(map(type, item)) else _written_out(item)


def _written_out(item: list[Any]) -> list[bytes]:
    """Return an entry with the value parts themselves where it names the place of an equal one before."""
    if not type(item[0]) is type(item[1]) is bytes:
        raise LedgerError(_NO_ENTRY)
    parts: list[bytes] = item[:2]
    for place, part in enumerate(item[2:]):
        again = type(part) is int and 0 <= part < place and type(item[2 + part]) is bytes
        if not again and type(part) is not bytes:
            raise LedgerError(_NO_ENTRY)
        parts.append(parts[2 + part] if again else part)
    return parts
