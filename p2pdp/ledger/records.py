"""Records of a ledger, the hash chain over them, skeletons, and the messages that records hold.

A ledger file is a magic line and then entries. An entry is a MessagePack array of byte strings: hash of the entry
before it, public part, and the value part of each of its records. Records of one event are one entry where that is
possible, since each entry costs a hash and has to be written whole: what a crash tore is as if it had not happened.
A skeleton is the same with each value part replaced by its BLAKE2b digest. The chain hashes

    previous hash || public part || BLAKE2b(value part) || BLAKE2b(value part) ...

over bytes as stored, so ledger and skeleton have the same chain, head and signature. A value part begins with a
128-bit salt (the sender's, for messages), so its digest gives nothing to guess; where a record has no value it is
empty, in the skeleton too, and counts in the chain by the digest of nothing.

A public part is an array [format version, index of the first record, record, record ...], and a record in it an array
[kind, ...], whose further items `bodies.py` names for each kind.
Messages are stored as the packed bytes that crossed the wire.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgpack

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.ledger.bodies import body_of
from p2pdp.wire import codec
from p2pdp.wire.codec import CodecError, pack_message, unpack_message

FORMAT_VERSION: Final = 3
LEDGER_MAGIC: Final = b"p2pdp ledger %02d\n" % FORMAT_VERSION
SKELETON_MAGIC: Final = b"p2pdp skelet %02d\n" % FORMAT_VERSION
_ANY_MAGIC: Final = re.compile(rb"p2pdp (?:ledger|skelet) (\d\d)\n")
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
ENTRY_RECORDS_MAX: Final = 64
_ENTRY_PARTS_MAX: Final = 2 + ENTRY_RECORDS_MAX

OPENED, STARTED, RECEIVED, OWN, WOKEN, DRAWN, CHOSEN, SENT, PUBLISHED, ENROLLED, ROSTER, CLOSED = range(12)
INPUTS, POOL, NOTE, MET = range(12, 16)
KIND_NAMES: Final = (
    "opened", "started", "received", "own", "woken", "drawn", "chosen", "sent", "published", "enrolled", "roster",
    "closed", "inputs", "pool", "note", "met",
)  # fmt: skip
EVENT_KINDS: Final = frozenset({STARTED, RECEIVED, OWN, WOKEN})

_hash: Final = partial(blake2b, digest_size=HASH_BYTES)
_new_hash: Final = _hash().copy
NO_VALUE_DIGEST: Final = _hash(b"").digest()
_NO_VALUE: Final = (b"",)
FIRST_PREVIOUS: Final = bytes(HASH_BYTES)
HEAD_LABEL: Final = "p2pdp ledger head"  # what a signature is for
EXCLUSION_LABEL: Final = "p2pdp exclusion"
_BYTES: Final = frozenset({bytes})
_WITH_MESSAGE: Final = frozenset({RECEIVED, OWN, SENT, PUBLISHED})

pack = msgpack.Packer(use_bin_type=True).pack


class LedgerError(VerificationFailed):
    """Bytes are not a ledger of this format. The text says where, and what is wrong."""


@dataclass(slots=True)
class Record:
    """One record as read. Treat it as immutable; it is not frozen, since millions are made, at twice the cost."""

    kind: int
    index: int
    body: Any  # the public part after version, kind and index: the named tuple of its kind, see `bodies.py`
    value: bytes | None  # None in a skeleton
    digest: bytes  # of the value part
    previous: bytes  # hash of the entry before; for a later record of an entry, of its own
    hash: bytes  # of its entry

    def __repr__(self) -> str:
        return f"Record({KIND_NAMES[self.kind]}, index={self.index})"


class Chain:
    """Number records and link each entry to the one before it."""

    __slots__ = ("count", "head")

    def __init__(self, count: int = 0, head: bytes = FIRST_PREVIOUS) -> None:
        self.count = count
        self.head = head

    def entry(self, records: Sequence[tuple[Any, ...]], values: Sequence[bytes]) -> bytes:
        """Return the stored bytes of one entry of up to `ENTRY_RECORDS_MAX` records.

        Each record is its kind and the fields of its body; `values` are the value parts.
        """
        head, count = self.head, self.count
        public: bytes = pack((FORMAT_VERSION, count, *records))
        hashed = head + public
        for value in values:
            hashed += _hash(value).digest() if value else NO_VALUE_DIGEST
        self.head = _hash(hashed).digest()
        self.count = count + len(records)
        stored: bytes = pack((head, public, *values))
        return stored

    def hop_entry(self, records: Sequence[tuple[Any, ...]], first: bytes, last: bytes) -> bytes:
        """Do the same faster where only the first and the last record have a value part."""
        head, count, between = self.head, self.count, len(records) - 2
        public: bytes = pack((FORMAT_VERSION, count, *records))
        of_first, of_last, whole = _new_hash(), _new_hash(), _new_hash()  # a copy takes no arguments to be sorted out
        of_first.update(first)
        of_last.update(last)
        whole.update(head + public + of_first.digest() + NO_VALUE_DIGEST * between + of_last.digest())
        self.head = whole.digest()
        self.count = count + between + 2
        stored: bytes = pack((head, public, first, *(_NO_VALUE * between), last))
        return stored

    def append(self, kind: int, body: tuple[Any, ...], value: bytes = b"") -> bytes:
        """Return the stored bytes of an entry of one record."""
        return self.entry(((kind, *body),), (value,))


@dataclass(frozen=True, slots=True)
class Contents:
    """A parsed ledger or skeleton. `torn_bytes` counts what follows the last whole record."""

    records: list[Record]
    skeleton: bool
    torn_bytes: int


def _stored(data: bytes) -> tuple[list[list[bytes]], int]:
    """Return the byte strings of each whole entry, and where the last of them ends."""
    start = len(LEDGER_MAGIC)
    unpacker = msgpack.Unpacker(
        max_buffer_size=0, raw=False, max_bin_len=RECORD_BYTES_MAX, max_array_len=_ENTRY_PARTS_MAX, max_map_len=0,
        max_str_len=0,
    )  # fmt: skip
    unpacker.feed(memoryview(data)[start:])
    items: list[list[bytes]] = []
    unpack_one, tell, length = unpacker.unpack, unpacker.tell, 0
    try:
        while True:
            items.append(unpack_one())
            length = tell()
    except msgpack.OutOfData:
        pass  # at the end, or within a torn entry, which moves `tell` on too
    except ValueError as error:
        raise LedgerError(f"not a record: {error}") from None
    for item in items:
        if type(item) is not list or len(item) < 3 or not _BYTES.issuperset(map(type, item)):
            raise LedgerError("not a record: expected at least three byte strings")
    return items, start + length


def read(data: bytes) -> Contents:
    """Parse a ledger or skeleton. Its chain is not checked here (see `chain_problem`), nor are bodies of records."""
    _check_magic(data)
    skeleton = data.startswith(SKELETON_MAGIC)
    stored, end = _stored(data)
    records: list[Record] = []
    for previous, public, *values in stored:
        bodies, index = _public(public, len(records), len(values))
        digests = [_digest_in(value, len(records)) for value in values] if skeleton else list(map(digest_of, values))
        linked = blake2b(previous + public + b"".join(digests), digest_size=HASH_BYTES).digest()
        for body, value, digest in zip(bodies, values, digests, strict=True):
            kind = body[0]
            given = None if skeleton else value
            records.append(Record(kind, index, body_of(kind, body[1:]), given, digest, previous, linked))
            index += 1
            previous = linked  # noqa: PLW2901  (of the next record of this entry)
    return Contents(records, skeleton, len(data) - end)


def _public(public: bytes, position: int, count: int) -> tuple[list[list[Any]], int]:
    """Return the records of an entry, and the index of the first of them."""
    try:
        head = codec.unpack(public)
    except codec.CodecError:
        head = None
    if type(head) is not list or len(head) != 2 + count or not type(head[0]) is type(head[1]) is int:
        raise LedgerError(f"record {position}: unreadable")
    version, index, *bodies = head
    if version != FORMAT_VERSION:
        raise LedgerError(f"record {position}: format version {version} is unknown")
    for body in bodies:
        if type(body) is not list or not body or type(body[0]) is not int:
            raise LedgerError(f"record {position}: unreadable")
        if not 0 <= body[0] < len(KIND_NAMES):
            raise LedgerError(f"record {position}: kind {body[0]} is unknown")
    return bodies, index


def digest_of(value: bytes) -> bytes:
    """Return the digest of a value part."""
    return blake2b(value, digest_size=HASH_BYTES).digest() if value else NO_VALUE_DIGEST


def _digest_in(third: bytes, position: int) -> bytes:
    """Return the digest that a skeleton stores in place of a value; it stores nothing for no value."""
    if third == NO_VALUE_DIGEST or len(third) not in (0, HASH_BYTES):
        raise LedgerError(f"record {position}: unreadable")
    return third or NO_VALUE_DIGEST


def records_in(entry: bytes) -> int:
    """Return how many records an entry has."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(entry[:5])
    return int(unpacker.read_array_header()) - 2


def _check_magic(data: bytes) -> None:
    if data.startswith((LEDGER_MAGIC, SKELETON_MAGIC)):
        return
    other = _ANY_MAGIC.match(data)
    if other is not None:
        raise LedgerError(f"has format version {int(other[1])}, and this program reads version {FORMAT_VERSION} only")
    raise LedgerError("neither a ledger nor a skeleton")


def whole_length(data: bytes) -> int:
    """Return how many leading bytes are whole entries; a crash tore what follows."""
    if LEDGER_MAGIC.startswith(data):  # torn before there was anything in it, or just begun
        return len(data) if data == LEDGER_MAGIC else 0
    _check_magic(data)
    return _stored(data)[1]


def to_skeleton(data: bytes) -> bytes:
    """Return the same chain without values and salts; a skeleton stays as it is."""
    _check_magic(data)
    if data.startswith(SKELETON_MAGIC):
        return data
    parts = [SKELETON_MAGIC]
    for previous, public, *values in _stored(data)[0]:
        parts.append(pack((previous, public, *(value and digest_of(value) for value in values))))
    return b"".join(parts)


def chain_problem(contents: Contents) -> tuple[int, str] | None:
    """Return the position of the first record that does not continue the chain, and what is wrong with it."""
    previous = FIRST_PREVIOUS
    for position, record in enumerate(contents.records):
        if record.previous != previous:
            return position, "does not continue the record before it: one of them was altered, removed or moved"
        if record.index != position:
            return position, f"says that it is number {record.index}"
        previous = record.hash
    return None


def unpack(data: bytes) -> Any:
    """Decode what `pack` made, with limits fit for files."""
    return msgpack.unpackb(data, raw=False, max_map_len=0, max_ext_len=0)


def head_parts(role: str, run_id: bytes, peer: Peer, count: int, head: bytes) -> tuple[bytes, ...]:
    """Return what the signature at the end of a ledger covers.

    `count` and `head` are the number and the hash of all records before the closing one.
    """
    return role.encode(), run_id, peer.to_bytes(4, "big", signed=True), count.to_bytes(8, "big"), head


def carries_message(record: Record) -> bool:
    return record.kind in _WITH_MESSAGE


def carries_value(record: Record) -> bool:
    """Return whether the message has a value; the digest of its value part tells, in a skeleton too."""
    return record.digest != NO_VALUE_DIGEST


def packed_message(record: Record) -> bytes:
    """Return the packed public part of a message, as it crossed the wire."""
    packed: bytes = record.body.message
    return packed


def other_end(record: Record) -> Peer:
    """Return who sent a message that was received, or whom one that was sent goes to."""
    other: Peer = record.body.sender if record.kind == RECEIVED else record.body.receiver
    return other


def packed_type(kind: str) -> bytes:
    """Return how `pack_message` begins every message of this type."""
    return pack_message(Message(kind))[:-1]  # without its fields, an empty list of one byte


def public_message(record: Record) -> Message:
    """Return the message without its value, which is all that a skeleton holds."""
    return _unpacked(record, b"")


def whole_message(record: Record) -> Message:
    """Return the message with its value; a skeleton has none."""
    return _unpacked(record, (record.value or b"")[SALT_BYTES:])


def _unpacked(record: Record, value: bytes) -> Message:
    try:
        return unpack_message(packed_message(record), value)
    except (CodecError, IndexError, TypeError):
        raise LedgerError(f"record {record.index}: holds no readable message") from None
