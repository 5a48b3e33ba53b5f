"""Records of a ledger, the hash chain over them, skeletons, and the messages that records hold.

A ledger file is a magic line and then entries. An entry is its length, a checksum, and a MessagePack array of byte
strings: hash of the entry before it, public part, and the value part of each of its records. Records of one event are
one entry where that is possible, since each entry costs a hash and has to be written whole: what a crash tore is as
if it had not happened. Events that led to no message may be in one entry with the next that did. The checksum tells
what a crash or a disk did: bytes behind the last whole entry, whether they are a part of one, zeros or anything else,
are a torn tail; but where a whole entry follows bytes that are none, the file is damaged, and nothing is cut off
(`torn.py`). Where a large value part stands in an entry twice, as one vector that goes to several peers, the later
place has a number in its stead: the place of the first among the entry's records. A skeleton is the same with each
value part replaced by its BLAKE2b digest. The chain hashes

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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final

import msgpack

from p2pdp.core.ids import Peer
from p2pdp.core.messages import HEAD, SKELETON
from p2pdp.core.step import Message
from p2pdp.ledger import entries
from p2pdp.ledger.bodies import body_of
from p2pdp.ledger.entries import LARGE_BYTES, content_at, large_entry, parts_of
from p2pdp.ledger.torn import entry_follows
from p2pdp.wire import codec
from p2pdp.wire.codec import CodecError, pack_message, unpack_message

FORMAT_VERSION: Final = 6
LEDGER_MAGIC: Final = b"p2pdp ledger %02d\n" % FORMAT_VERSION
SKELETON_MAGIC: Final = b"p2pdp skelet %02d\n" % FORMAT_VERSION
_ANY_MAGIC: Final = re.compile(rb"p2pdp (?:ledger|skelet) (\d\d)\n")
ENTRY_RECORDS_MAX: Final = entries.ENTRY_RECORDS_MAX
ENVELOPE: Final = entries.ENVELOPE
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32

OPENED, STARTED, RECEIVED, OWN, WOKEN, DRAWN, CHOSEN, SENT, PUBLISHED, ENROLLED, ROSTER, CLOSED = range(12)
INPUTS, POOL, NOTE, MET, PAIRED, REFUSED = range(12, 18)
KIND_NAMES: Final = (
    "opened", "started", "received", "own", "woken", "drawn", "chosen", "sent", "published", "enrolled", "roster",
    "closed", "inputs", "pool", "note", "met", "paired", "refused",
)  # fmt: skip
EVENT_KINDS: Final = frozenset({STARTED, RECEIVED, OWN, WOKEN, REFUSED})
ARRIVED: Final = frozenset({RECEIVED, REFUSED})  # what takes a number of a link

_hash: Final = partial(blake2b, digest_size=HASH_BYTES)
_new_hash: Final = _hash().copy
NO_VALUE_DIGEST: Final = _hash(b"").digest()
FIRST_PREVIOUS: Final = bytes(HASH_BYTES)
HEAD_LABEL: Final = "p2pdp ledger head"  # what a signature is for
EXCLUSION_LABEL: Final = "p2pdp exclusion"
SURVIVORS_LABEL: Final = "p2pdp survivors"
_NOTHING: Final[Mapping[int, bytes]] = MappingProxyType({})
_WITH_MESSAGE: Final = frozenset({RECEIVED, OWN, SENT, PUBLISHED})

pack = entries.pack
enveloped = entries.enveloped
LedgerError = entries.LedgerError
DamagedLedger = entries.DamagedLedger


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


class LateRecord(Record):
    """A record whose value part is read from its ledger when it is asked for: it was given what reads it."""

    __slots__ = ()

    @property
    def value(self) -> bytes | None:
        read: Callable[[], bytes] | bytes | None = _VALUE.__get__(self)
        return read() if callable(read) else read

    @value.setter
    def value(self, value: Any) -> None:
        _VALUE.__set__(self, value)


_VALUE: Final[Any] = Record.__dict__["value"]


class Chain:
    """Number records and link each entry to the one before it."""

    __slots__ = ("count", "head")

    def __init__(self, count: int = 0, head: bytes = FIRST_PREVIOUS) -> None:
        self.count = count
        self.head = head

    def entry(
        self,
        records: Sequence[tuple[Any, ...]],
        values: Sequence[bytes | memoryview],
        known: Mapping[int, bytes] = _NOTHING,
    ) -> bytes:
        """Return the stored bytes of one entry of up to `ENTRY_RECORDS_MAX` records.

        Each record is its kind and the fields of its body; `values` are the value parts, and `known` has by their
        places the digests of those that were hashed before.
        """
        digests = [
            (known.get(place) or digest_of(value)) if value else NO_VALUE_DIGEST for place, value in enumerate(values)
        ]
        return self.linked(records, values, digests)

    def linked(
        self, records: Sequence[tuple[Any, ...]], values: Collection[bytes | memoryview], digests: Collection[bytes]
    ) -> bytes:
        """Do the same where the digests of all value parts are known."""
        head, count = self.head, self.count
        public: bytes = pack((FORMAT_VERSION, count, *records))
        whole = _new_hash()  # a copy takes no arguments to be sorted out
        whole.update(b"".join((head, public, *digests)))
        self.head = whole.digest()
        self.count = count + len(records)
        if max(map(len, values)) < LARGE_BYTES:
            return enveloped(pack((head, public, *values)))
        return large_entry(head, public, values, digests)

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
    at = len(LEDGER_MAGIC)
    items: list[list[bytes]] = []
    while (content := content_at(data, at)) is not None:
        items.append(parts_of(content))
        at += ENVELOPE.size + len(content)
    if at < len(data) and entry_follows(data, at, len(data)):
        raise damaged_at(at)
    return items, at


def damaged_at(at: int) -> DamagedLedger:
    return DamagedLedger(f"damaged at byte {at}: what stands there is no whole entry, and others follow it")


def read(data: bytes) -> Contents:
    """Parse a ledger or skeleton. Its chain is not checked here (see `chain_problem`), nor are bodies of records."""
    check_magic(data)
    skeleton = data.startswith(SKELETON_MAGIC)
    stored, end = _stored(data)
    records: list[Record] = []
    for parts in stored:
        records += records_of(parts, len(records), skeleton=skeleton)
    return Contents(records, skeleton, len(data) - end)


def records_of(
    parts: list[bytes], position: int, *, skeleton: bool, late: Callable[[int], Callable[[], bytes]] | None = None
) -> list[Record]:
    """Return the records of an entry; `position` counts those before it.

    `late` returns what reads the value part of the record at a place in the entry: large ones are not kept then.
    """
    previous, public, *values = parts
    bodies, index = _public(public, position, len(values))
    if skeleton:
        digests = [_digest_in(value, position) for value in values]
    else:
        once = {id(value): digest_of(value) for value in values if len(value) >= LARGE_BYTES}
        digests = [once.get(id(value)) or digest_of(value) for value in values]
    linked = blake2b(previous + public + b"".join(digests), digest_size=HASH_BYTES).digest()
    records: list[Record] = []
    for place, (body, value, digest) in enumerate(zip(bodies, values, digests, strict=True)):
        kind = body[0]
        given: Any = None if skeleton else value
        made = Record
        if late is not None and len(value) >= LARGE_BYTES:
            made, given = LateRecord, late(place)
        records.append(made(kind, index, body_of(kind, body[1:]), given, digest, previous, linked))
        index += 1
        previous = linked  # of the next record of this entry
    return records


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


def digest_of(value: bytes | memoryview) -> bytes:
    """Return the digest of a value part."""
    if not value:
        return NO_VALUE_DIGEST
    state = _new_hash()
    state.update(value)
    return state.digest()


def _digest_in(third: bytes, position: int) -> bytes:
    """Return the digest that a skeleton stores in place of a value; it stores nothing for no value."""
    if third == NO_VALUE_DIGEST or len(third) not in (0, HASH_BYTES):
        raise LedgerError(f"record {position}: unreadable")
    return third or NO_VALUE_DIGEST


def records_in(entry: bytes) -> int:
    """Return how many records an entry has."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(entry[ENVELOPE.size : ENVELOPE.size + 5])
    return int(unpacker.read_array_header()) - 2


def check_magic(data: bytes) -> None:
    if data.startswith((LEDGER_MAGIC, SKELETON_MAGIC)):
        return
    other = _ANY_MAGIC.match(data)
    if other is not None:
        raise LedgerError(f"has format version {int(other[1])}, and this program reads version {FORMAT_VERSION} only")
    raise LedgerError("neither a ledger nor a skeleton")


def whole_length(data: bytes) -> int:
    """Return how many leading bytes are whole entries; a crash tore what follows."""
    if not data.startswith(LEDGER_MAGIC) and LEDGER_MAGIC.startswith(data.rstrip(b"\0")):
        return 0  # torn before there was anything in it; file systems may leave zeros in place of data
    check_magic(data)
    return _stored(data)[1]


def to_skeleton(data: bytes) -> bytes:
    """Return the same chain without values and salts; a skeleton stays as it is."""
    check_magic(data)
    if data.startswith(SKELETON_MAGIC):
        return data
    return b"".join((SKELETON_MAGIC, *map(bare_entry, _stored(data)[0])))


def bare_entry(parts: list[bytes]) -> bytes:
    """Return an entry of a skeleton: with digests in place of value parts."""
    previous, public, *values = parts
    once = {id(value): digest_of(value) for value in values if value}
    return enveloped(pack((previous, public, *(value and once[id(value)] for value in values))))


def chain_problem(contents: Contents) -> tuple[int, str] | None:
    """Return the position of the first record that does not continue the chain, and what is wrong with it."""
    previous = FIRST_PREVIOUS
    for position, record in enumerate(contents.records):
        problem = record_problem(record, position, previous)
        if problem is not None:
            return position, problem
        previous = record.hash
    return None


def record_problem(record: Record, position: int, previous: bytes) -> str | None:
    """Return what is wrong with a record at this position, behind one with this hash."""
    if record.previous != previous:
        return "does not continue the record before it: one of them was altered, removed or moved"
    return None if record.index == position else f"says that it is number {record.index}"


def unpack(data: bytes) -> Any:
    """Decode what `pack` made, within the limits of the codec: a file of somebody else claims what it likes."""
    try:
        return codec.unpack(data)
    except CodecError as error:
        raise LedgerError(str(error)) from None


def head_parts(role: str, run_id: bytes, peer: Peer, count: int, head: bytes, *said: bytes) -> tuple[bytes, ...]:
    """Return what the signature at the end of a ledger covers.

    `count` and `head` are the number and the hash of all records before the closing one; what this says besides is
    `said`.
    """
    return role.encode(), run_id, peer.to_bytes(4, "big", signed=True), count.to_bytes(8, "big"), head, *said


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
    other: Peer = record.body.sender if record.kind in ARRIVED else record.body.receiver
    return other


def packed_type(kind: str) -> bytes:
    """Return how `pack_message` begins every message of this type."""
    return pack_message(Message(kind))[:-1]  # without its fields, an empty list of one byte


_HANDED_IN: Final = packed_type(HEAD), packed_type(SKELETON)


def is_handed_in(record: Record) -> bool:
    """Return whether a message came after its sender's ledger was closed, and so is not recorded there."""
    return packed_message(record).startswith(_HANDED_IN)


def public_message(record: Record) -> Message:
    """Return the message without its value, which is all that a skeleton holds."""
    return _unpacked(record, b"")


def whole_message(record: Record) -> Message:
    """Return the message with its value; a skeleton has none."""
    part = record.value or b""
    return _unpacked(record, memoryview(part)[SALT_BYTES:] if len(part) > LARGE_BYTES else part[SALT_BYTES:])


_KNOWN_MAX: Final = 1 << 16  # some 20 MB, if all are different
_KNOWN_BYTES_MAX: Final = 128
_FLAT: Final = frozenset({int, str, bytes})
_known: Final[dict[bytes, Message]] = {}  # messages without value: many say the same, such as the number of a round


def _unpacked(record: Record, value: bytes | memoryview) -> Message:
    try:
        packed = packed_message(record)
        return unpack_message(packed, value) if value else _without_value(packed)
    except (CodecError, IndexError, TypeError):
        raise LedgerError(f"record {record.index}: holds no readable message") from None


def _without_value(packed: bytes) -> Message:
    found = _known.get(packed)
    if found is None:
        found = unpack_message(packed, b"")
        if len(packed) <= _KNOWN_BYTES_MAX and _FLAT.issuperset(map(type, found.fields)):  # which nobody can change
            if len(_known) >= _KNOWN_MAX:
                _known.clear()
            _known[packed] = found
    return found
