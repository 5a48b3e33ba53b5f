"""Records, the hash chain over them, and skeletons, over bytes.

A ledger file is a magic line and then records, each a MessagePack array of three byte
strings: hash of the previous record, public part, value part. A skeleton is the same with
the value part replaced by its BLAKE2b digest. The chain hashes

    previous hash || public part || BLAKE2b(value part)

over bytes as stored, so ledger and skeleton have the same chain, head and signature. A value
part begins with a 128-bit salt (the sender's, for messages), so its digest gives nothing to
guess; it is empty where a record has no value.

A public part is an array [format version, kind, index, ...]; what follows depends on the kind:

    OPENED    role, run id, peer, facts...          STARTED   now_s
    RECEIVED  now_s, sender, message                OWN       now_s, message
    WOKEN     now_s                                 DRAWN     number, mechanism, scale, categories, shape, pool, offset
    CHOSEN    options, picked                       SENT      receiver, message
    PUBLISHED message                               ENROLLED  now_s, application
    ROSTER    signed roster                         CLOSED    signature
    INPUTS    event, count                          POOL      event, pool, mechanism, scale, categories, shape, count
    NOTE      event, what                           MET       round, users

Messages are stored as the packed bytes that crossed the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgpack

from p2pdp.wire import codec

FORMAT_VERSION: Final = 1
LEDGER_MAGIC: Final = b"p2pdp ledger 01\n"
SKELETON_MAGIC: Final = b"p2pdp skelet 01\n"
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024

OPENED, STARTED, RECEIVED, OWN, WOKEN, DRAWN, CHOSEN, SENT, PUBLISHED, ENROLLED, ROSTER, CLOSED = range(12)
INPUTS, POOL, NOTE, MET = range(12, 16)
KIND_NAMES: Final = (
    "opened", "started", "received", "own", "woken", "drawn", "chosen", "sent", "published", "enrolled", "roster",
    "closed", "inputs", "pool", "note", "met",
)  # fmt: skip
EVENT_KINDS: Final = frozenset({STARTED, RECEIVED, OWN, WOKEN})

NO_VALUE_DIGEST: Final = blake2b(b"", digest_size=HASH_BYTES).digest()
FIRST_PREVIOUS: Final = bytes(HASH_BYTES)

pack = msgpack.Packer(use_bin_type=True).pack


class LedgerError(Exception):
    """Bytes that are no ledger of ours; the text says where and what."""


@dataclass(slots=True)
class Record:
    """One record as read. Nobody changes one; it is not frozen because millions are made, at twice the cost."""

    kind: int
    index: int
    body: list[Any]  # the public part after version, kind and index
    value: bytes | None  # None in a skeleton
    digest: bytes  # of the value part
    previous: bytes
    hash: bytes

    def __repr__(self) -> str:
        return f"Record({KIND_NAMES[self.kind]}, index={self.index})"


class Chain:
    """Appends records: gives each its index and links it to the one before."""

    __slots__ = ("count", "head")

    def __init__(self, count: int = 0, head: bytes = FIRST_PREVIOUS) -> None:
        self.count = count
        self.head = head

    def append(self, kind: int, body: tuple[Any, ...], value: bytes = b"") -> bytes:
        public: bytes = pack((FORMAT_VERSION, kind, self.count, *body))
        digest = blake2b(value, digest_size=HASH_BYTES).digest() if value else NO_VALUE_DIGEST
        stored: bytes = pack((self.head, public, value))
        self.head = blake2b(self.head + public + digest, digest_size=HASH_BYTES).digest()
        self.count += 1
        return stored


@dataclass(frozen=True, slots=True)
class Contents:
    """A parsed ledger or skeleton. `torn_bytes` counts what follows the last whole record."""

    records: list[Record]
    skeleton: bool
    torn_bytes: int


_THREE_NUMBERS: Final = [int] * 3


def _stored(data: bytes) -> tuple[list[list[bytes]], int]:
    """The three byte strings of each whole record, and where the last of them ends; a torn one is not there."""
    start = len(LEDGER_MAGIC)
    unpacker = msgpack.Unpacker(
        max_buffer_size=0, raw=False, max_bin_len=RECORD_BYTES_MAX, max_array_len=3, max_map_len=0, max_str_len=0
    )
    unpacker.feed(memoryview(data)[start:])
    items: list[list[bytes]] = []
    unpack_one, tell, length = unpacker.unpack, unpacker.tell, 0
    try:
        while True:
            items.append(unpack_one())
            length = tell()
    except msgpack.OutOfData:
        pass  # at the end, or within a torn record, which moves `tell` on too
    except ValueError as error:
        raise LedgerError(f"not a record: {error}") from None
    for item in items:
        if type(item) is not list or len(item) != 3 or not type(item[0]) is type(item[1]) is type(item[2]) is bytes:
            raise LedgerError("not a record: expected three byte strings")
    return items, start + length


def read(data: bytes) -> Contents:
    """Parses a ledger or skeleton without checking its chain (see `chain_problem`, and `audit`)."""
    _check_magic(data)
    skeleton = data.startswith(SKELETON_MAGIC)
    stored, end = _stored(data)
    records: list[Record] = []
    unpack_public = codec.unpack
    for previous, public, third in stored:
        digest = third if skeleton else (blake2b(third, digest_size=HASH_BYTES).digest() if third else NO_VALUE_DIGEST)
        try:
            head = unpack_public(public)
        except codec.CodecError:
            head = None
        if type(head) is not list or len(digest) != HASH_BYTES or [type(part) for part in head[:3]] != _THREE_NUMBERS:
            raise LedgerError(f"record {len(records)}: unreadable")
        version, kind, index = head[:3]
        if version != FORMAT_VERSION or not 0 <= kind < len(KIND_NAMES):
            raise LedgerError(f"record {len(records)}: format version {version} or kind {kind} is unknown")
        linked = blake2b(previous + public + digest, digest_size=HASH_BYTES).digest()
        records.append(Record(kind, index, head[3:], None if skeleton else third, digest, previous, linked))
    return Contents(records, skeleton, len(data) - end)


def _check_magic(data: bytes) -> None:
    if not data.startswith((LEDGER_MAGIC, SKELETON_MAGIC)):
        raise LedgerError("neither a ledger nor a skeleton of this format version")


def whole_length(data: bytes) -> int:
    """How many leading bytes are whole records; what follows was torn by a crash."""
    if LEDGER_MAGIC.startswith(data):  # torn before there was anything in it, or just begun
        return len(data) if data == LEDGER_MAGIC else 0
    _check_magic(data)
    return _stored(data)[1]


def to_skeleton(data: bytes) -> bytes:
    """The same chain without values and salts; a skeleton stays as it is."""
    _check_magic(data)
    if data.startswith(SKELETON_MAGIC):
        return data
    parts = [SKELETON_MAGIC]
    for previous, public, value in _stored(data)[0]:
        digest = blake2b(value, digest_size=HASH_BYTES).digest() if value else NO_VALUE_DIGEST
        parts.append(pack((previous, public, digest)))
    return b"".join(parts)


def chain_problem(contents: Contents) -> tuple[int, str] | None:
    """The first record that does not continue the chain, with what is wrong; None if all do."""
    previous = FIRST_PREVIOUS
    for position, record in enumerate(contents.records):
        if record.previous != previous:
            return position, "does not continue the record before it: one of them was altered, removed or moved"
        if record.index != position:
            return position, f"says that it is number {record.index}"
        previous = record.hash
    return None


def unpack(data: bytes) -> Any:
    """What `pack` made, with limits fit for files."""
    return msgpack.unpackb(data, raw=False, max_map_len=0, max_ext_len=0)
