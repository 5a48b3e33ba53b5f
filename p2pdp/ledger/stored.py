"""Stored ledgers, read entry by entry, as often as needed: what is held in memory does not grow with their values.

A ledger is its bytes, or a `Source` of them. `contents_of`, `has_begun` and `skeleton_of` take either. Of a source the
records do not hold large values, which are read again when they are asked for.

Guarantee: `whole_end` and `stream` take and refuse the same bytes as `records.whole_length` and `records.read`, with
one entry in memory at a time; only what follows the last whole entry is read at once.

The caller owes: a source does not change below `size` while it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from typing import BinaryIO, Final, Protocol, overload

from p2pdp.ledger.entries import ENVELOPE, is_whole, parts_of
from p2pdp.ledger.records import (
    LEDGER_MAGIC,
    SKELETON_MAGIC,
    Contents,
    DamagedLedger,
    LedgerError,
    Record,
    bare_entry,
    check_magic,
    damaged_at,
    read,
    records_of,
    to_skeleton,
    whole_length,
)
from p2pdp.ledger.torn import entry_follows

_VALUES_AT: Final = 2  # in an entry, behind a hash and the public part


class Source(Protocol):
    """A stored ledger that can be read from its start as often as needed."""

    @property
    def size(self) -> int: ...

    def open(self) -> BinaryIO: ...


Ledger = bytes | Source


def size_of(ledger: Ledger) -> int:
    return len(ledger) if isinstance(ledger, bytes) else ledger.size


def contents_of(ledger: Ledger, entries: Entries) -> Contents:
    """Parse a ledger or skeleton as `records.read` does; `entries` reads large values of a source again."""
    if isinstance(ledger, bytes):
        return read(ledger)
    found: list[Record] = []
    with ledger.open() as file:
        magic = file.read(len(LEDGER_MAGIC))
        check_magic(magic)
        skeleton, at = magic == SKELETON_MAGIC, len(magic)
        while (content := _next_content(file, ledger.size - at)) is not None:
            late = None if skeleton else partial(Late, entries, ledger, at)
            found += records_of(parts_of(content), len(found), skeleton=skeleton, late=late)
            at += ENVELOPE.size + len(content)
        _check_tail(file, at, ledger.size)
    return Contents(found, skeleton, ledger.size - at)


def first_of(ledger: Ledger) -> Record | None:
    """Return the first record of a ledger or skeleton, without a look at the others; None where there is none."""
    with BytesIO(ledger) if isinstance(ledger, bytes) else ledger.open() as file:
        magic = file.read(len(LEDGER_MAGIC))
        check_magic(magic)
        content = _next_content(file, size_of(ledger) - len(magic))
        if content is None:
            return None
        return records_of(parts_of(content), 0, skeleton=magic == SKELETON_MAGIC)[0]


def bytes_of(ledger: Ledger) -> bytes:
    if isinstance(ledger, bytes):
        return ledger
    with ledger.open() as file:
        return file.read(ledger.size)


def has_begun(ledger: Ledger) -> bool:
    """Return whether a ledger has a whole record, or is damaged: reading it tells where."""
    try:
        if isinstance(ledger, bytes):
            return whole_length(ledger) > 0
        with ledger.open() as file:
            start = file.read(len(LEDGER_MAGIC))
            check_magic(start)
            return start == SKELETON_MAGIC or _next_content(file, ledger.size - len(start)) is not None
    except DamagedLedger:
        return True


def skeleton_of(ledger: Ledger) -> bytes:
    """Return what `to_skeleton` makes of these bytes."""
    if isinstance(ledger, bytes):
        return to_skeleton(ledger)
    with ledger.open() as file:
        magic = file.read(len(LEDGER_MAGIC))
        check_magic(magic)
        if magic == SKELETON_MAGIC:
            return bytes_of(ledger)
        pieces, at = [SKELETON_MAGIC], len(magic)
        while (content := _next_content(file, ledger.size - at)) is not None:
            pieces.append(bare_entry(parts_of(content)))
            at += ENVELOPE.size + len(content)
        _check_tail(file, at, ledger.size)
    return b"".join(pieces)


class Entries:
    """Reads entries of ledgers again, and keeps the one that was read last."""

    def __init__(self) -> None:
        self._last: tuple[Source, int, list[bytes]] | None = None

    def parts(self, source: Source, at: int) -> list[bytes]:
        """Return the parts of the entry that begins here."""
        if self._last is None or self._last[0] is not source or self._last[1] != at:
            self._last = None
            with source.open() as file:
                file.seek(at)
                content = _next_content(file, source.size - at)
            if content is None:
                raise LedgerError(f"was changed at byte {at} while it was read")
            self._last = source, at, parts_of(content)
        return self._last[2]


@dataclass(frozen=True, slots=True, repr=False)
class Late:
    """Reads the value part of one record."""

    entries: Entries
    source: Source
    at: int
    place: int  # among the records of its entry

    def __call__(self) -> bytes:
        return self.entries.parts(self.source, self.at)[_VALUES_AT + self.place]


def _check_tail(file: BinaryIO, at: int, size: int) -> None:
    """Refuse a ledger in which a whole entry follows bytes that are none."""
    if at < size:
        file.seek(at)
        if entry_follows(file.read(), 0, size):
            raise damaged_at(at)


def stream(source: Source, offset: int = 0) -> Iterator[tuple[int, list[Record]]]:
    """Give the entries of a ledger one after the other, each with where it begins and its records.

    For one that is whole: `whole_end` says up to where. Only the entry that is given is in memory. With an `offset`
    it begins at that entry.
    """
    position, at = 0, offset
    with source.open() as file:
        at += 0 if offset else _magic_of(file)
        file.seek(at)
        while (content := _next_content(file, source.size - at)) is not None:
            found = records_of(parts_of(content), position, skeleton=False)
            yield at, found
            position += len(found)
            at += ENVELOPE.size + len(content)


def _magic_of(file: BinaryIO) -> int:
    """Check that this is a ledger, and return where its first entry begins."""
    magic = file.read(len(LEDGER_MAGIC))
    check_magic(magic)
    if magic == SKELETON_MAGIC:
        raise LedgerError("it is a skeleton")
    return len(magic)


def _next_content(file: BinaryIO, left: int) -> bytes | None:
    """Return the content of the next entry, of a file that has so many bytes left; None if there is no whole one."""
    if left <= ENVELOPE.size:
        return None
    length, checksum = ENVELOPE.unpack(file.read(ENVELOPE.size))
    if not 0 < length <= left - ENVELOPE.size:
        return None
    content = file.read(length)
    return content if is_whole(content, length, checksum) else None


def whole_end(source: Source) -> int:
    """Return what `whole_length` does, without the whole file in memory."""
    with source.open() as file:
        start = file.read(len(LEDGER_MAGIC))
        if start != LEDGER_MAGIC:
            file.seek(0)
            return whole_length(file.read())  # nothing, or no ledger
        at = len(start)
        while (content := _next_content(file, source.size - at)) is not None:
            at += ENVELOPE.size + len(content)
        _check_tail(file, at, source.size)
    return at


@dataclass(frozen=True, slots=True, repr=False)
class InMemory:
    """A ledger whose bytes are here."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def open(self) -> BinaryIO:
        return BytesIO(self.data)


class StoredRecords(Sequence[Record]):
    """The records of a stored ledger, of which the last one only is kept: each pass over them reads it anew."""

    def __init__(self, source: Source, count: int, last: Record | None) -> None:
        self._source = source
        self._count = count
        self._last = last

    def __repr__(self) -> str:
        return f"StoredRecords({self._count})"

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        if self._count:
            for _, records in stream(self._source):
                yield from records

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """Return the last record at once, and others by a pass over those before them."""
        if isinstance(index, slice):
            return list(self)[index]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(f"a ledger of {self._count} records has no record {index}")
        if place == self._count - 1 and self._last is not None:
            return self._last
        return next(islice(self, place, None))
