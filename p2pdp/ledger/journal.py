"""A peer's two ledgers as one write-ahead log that can be replayed.

Guarantee: `append` hands out the bytes to be written, in order, and the caller writes them
before any effect leaves the process. A journal made from stored bytes first *replays*: the
caller performs the same handlers again, and each `append` must then ask for exactly the record
that stands there; `draw` and `choose` give back what was recorded. When the stored records are
used up, even in the middle of a handler, the journal continues by writing. So a restart at any
record ends in the same state, with the noise first drawn.

`view` holds what happened without values of draws; `private` holds inputs and the values of
draws, which are written first. Entropy is not drawn here: salts come in with the call. Stored ledgers are read record
by record, several times, and not kept in memory.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from p2pdp.core.errors import VerificationFailed
from p2pdp.ledger import records
from p2pdp.ledger.bodies import Drawn, Note, Pool
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    ENTRY_RECORDS_MAX,
    FIRST_PREVIOUS,
    INPUTS,
    LEDGER_MAGIC,
    MET,
    NOTE,
    POOL,
    SALT_BYTES,
    Chain,
    LedgerError,
    Record,
)
from p2pdp.ledger.stored import InMemory, Source, StoredRecords, stream, whole_end
from p2pdp.wire.codec import CodecError, pack_value, unpack_value

VIEW: Final = "view"
PRIVATE: Final = "private"
POOLS_KEPT: Final = 16  # in memory in a replay: a machine draws from a few at a time


class Journal:
    def __init__(self, view: bytes | Source = b"", private: bytes | Source = b"") -> None:
        self.writes: list[tuple[str, bytes]] = []
        self.bodies: list[tuple[Any, ...]] = []  # view records that are not linked yet: kind and body
        self.parts: dict[int, bytes | memoryview] = {}  # and by their places the value parts of those that have one
        self.digests: dict[int, bytes] = {}  # and of those the digests that are known
        self._chains = {VIEW: Chain(), PRIVATE: Chain()}
        self._stored = StoredRecords(InMemory(b""), 0, None)
        self._coming: Iterator[Record] = iter(())
        self._current: Record | None = None  # of a replay
        self._private: Source = InMemory(b"")
        self._pools_at = array("Q")  # where the entry of each pool of earlier lives begins
        self._pools: OrderedDict[int, list[Any]] = OrderedDict()  # those that were used last
        self.inputs: bytes | None = None
        self.pools_drawn = 0
        self.closed = False
        self.private_closed = False
        self._load(*(InMemory(given) if isinstance(given, bytes) else given for given in (view, private)))
        self._advance()
        self.replaying = self._current is not None
        self.view = self._chains[VIEW]

    def _load(self, view: Source, private: Source) -> None:
        """Check both chains from end to end, and learn where each pool is."""
        if view.size:
            count, last = self._continue(VIEW, view, lambda _at, _record: None)
            self._stored = StoredRecords(view, count, last)
            self._coming = iter(self._stored)
        else:
            self.writes.append((VIEW, LEDGER_MAGIC))
        if private.size:
            self._private = private
            self._continue(PRIVATE, private, self._learn)
        else:
            self.writes.append((PRIVATE, LEDGER_MAGIC))

    def _learn(self, at: int, record: Record) -> None:
        """Take note of a private record, whose entry begins here."""
        if record.kind == INPUTS:
            self.inputs = (record.value or b"")[SALT_BYTES:]
        elif record.kind == CLOSED:
            self.private_closed = True
        elif record.kind == POOL:
            _pool_in(record)
            if record.body.number != self.pools_drawn:
                raise VerificationFailed(
                    f"the private ledger cannot be continued: record {record.index} is not the pool that belongs there"
                )
            self._pools_at.append(at)
            self.pools_drawn += 1

    def _continue(self, name: str, source: Source, learn: Callable[[int, Record], None]) -> tuple[int, Record | None]:
        """Check the chain of a ledger, and return how many records it has, and the last of them."""
        count, head = 0, FIRST_PREVIOUS
        last: Record | None = None
        try:
            if whole_end(source) < source.size:
                raise LedgerError("it ends in the middle of an entry")
            for at, found in stream(source):
                for record in found:
                    problem = records.record_problem(record, count, head)
                    if problem is not None:
                        raise LedgerError(f"record {count} {problem}")
                    learn(at, record)
                    last, count, head = record, count + 1, record.hash
        except LedgerError as error:
            raise VerificationFailed(f"the {name} ledger cannot be continued: {error}") from None
        self._chains[name] = Chain(count, head)
        return count, last

    def _advance(self) -> None:
        self._current = next(self._coming, None)

    @property
    def count(self) -> int:
        """Return the index of the next view record; in a replay, the index that it had then."""
        if self.replaying:
            return self._now.index
        return self.view.count + len(self.bodies)

    @property
    def head(self) -> bytes:
        if self.replaying:
            return self._now.previous
        self._link()
        return self.view.head

    @property
    def _now(self) -> Record:
        assert self._current is not None, "only a replay has a current record"
        return self._current

    def stored(self) -> StoredRecords:
        """Return the stored view records, from which counts are rebuilt before the replay begins."""
        return self._stored

    def next_stored(self) -> Record | None:
        return self._current

    def take_stored(self) -> Record:
        """Return the current record of a replay, and go on to the next."""
        record = self._now
        self._advance()
        self.replaying = self._current is not None
        self.closed = self.closed or record.kind == CLOSED
        return record

    def append(self, kind: int, body: tuple[Any, ...], value: bytes = b"", salt: bytes = b"") -> bytes:
        """Write one view record, and return its value part (salt included) as it stands in the ledger.

        In a replay the record must be the one that stands there; its salt is the one first drawn.
        """
        if self.replaying:
            return self.again(kind, body, value)
        part = salted(value, salt) if value else b""
        self.add(part, kind, *body)
        if kind == CLOSED:
            self.closed = True
        return part

    def again(self, kind: int, body: tuple[Any, ...], value: bytes) -> bytes:
        """Return the value part of the current record of a replay, which must be this one."""
        record = self.take_stored()
        stored = record.value or b""
        known = records.pack((records.FORMAT_VERSION, kind, record.index, *body))
        if known != records.pack((records.FORMAT_VERSION, record.kind, record.index, *record.body)) or (
            stored[SALT_BYTES:] != value
        ):
            raise VerificationFailed(
                f"record {record.index} of the view ledger is not what its own events lead to: "
                f"{records.KIND_NAMES[record.kind]} stands there, {records.KIND_NAMES[kind]} was expected"
            )
        return stored

    def append_private(self, kind: int, body: tuple[Any, ...], value: bytes, salt: bytes) -> None:
        """Write one private record. A replay never calls this: what it needs is stored already."""
        self._link()
        self.writes.append((PRIVATE, self._chains[PRIVATE].append(kind, body, salted(value, salt))))

    def note(self, what: str, salt: bytes) -> None:
        """Write a fault, or a count that depends on data, to the private ledger; a replay repeats none."""
        if not self.replaying:
            self.append_private(NOTE, Note(self.count), what.encode(), salt)

    def add_pool(self, body: tuple[Any, ...], values: list[Any], salt: bytes) -> int:
        """Record a batch of draws before any of them is used, and return its number."""
        number = self.pools_drawn
        self.append_private(POOL, Pool(None, number, *body), pack_value(values), salt)
        self.pools_drawn += 1
        self._pools.clear()  # a replay is over, and no draw of an earlier life is asked for any more
        self._pools_at = array("Q")
        return number

    def drawn_before(self, body: tuple[Any, ...]) -> Any:
        """Return the value of the next draw of a replay, which must have this number and these terms."""
        record = self.take_stored()
        draw: Drawn = record.body
        if record.kind != DRAWN or len(draw) != len(Drawn._fields) or (draw.number, *draw.terms) != body:
            raise VerificationFailed(f"record {record.index} of the view ledger is not the draw that belongs there")
        pool, offset = draw.pool, draw.offset
        values = self._pool(pool) if type(pool) is int and 0 <= pool < len(self._pools_at) else []
        if type(offset) is not int or not 0 <= offset < len(values):
            raise VerificationFailed(
                f"record {record.index} of the view ledger names a draw that the private ledger does not hold"
            )
        return values[offset]

    def drawn(self, pool: int, offset: int) -> Any:
        """Return a value of a pool that the private ledger holds."""
        if not 0 <= pool < len(self._pools_at):
            raise KeyError(pool)
        return self._pool(pool)[offset]

    def _pool(self, number: int) -> list[Any]:
        """Return the draws of a pool of an earlier life, read anew unless it was used just now."""
        if number not in self._pools:
            _, found = next(stream(self._private, self._pools_at[number]))
            pools = [record for record in found if record.kind == POOL and record.body.number == number]
            self._pools[number] = _pool_in(pools[0])
            if len(self._pools) > POOLS_KEPT:
                self._pools.popitem(last=False)
        return self._pools[number]

    def chosen_before(self, options: int) -> int:
        """Return the next choice of a replay, which must be among as many options."""
        record = self.take_stored()
        body = record.body
        if record.kind != CHOSEN or len(body) != 2 or body.options != options or body.picked not in range(options):
            raise VerificationFailed(f"record {record.index} of the view ledger is not the choice that belongs there")
        return int(body.picked)

    def meet(self, number: int, toss: Callable[[int], list[int]]) -> list[int]:
        """Return whom a peer meets in a round: as recorded in a replay, otherwise as `toss` says now."""
        if self.replaying:
            record = self.take_stored()
            body = record.body
            if record.kind != MET or len(body) != 2 or body.round != number or not isinstance(body.users, list):
                raise VerificationFailed(
                    f"record {record.index} of the view ledger is not the meeting that belongs there"
                )
            return list(body.users)
        met = toss(number)
        self.add(b"", MET, number, met)
        return met

    def private_state(self) -> tuple[int, bytes]:
        """Return the number of private records and the hash of the last entry."""
        chain = self._chains[PRIVATE]
        return chain.count, chain.head

    def add(self, part: bytes, *record: Any, digest: bytes | None = None) -> None:
        """Add a view record, kind and fields of its body, whose `digest` may be known. A replay never calls this."""
        if part:
            self.parts[len(self.bodies)] = part
            if digest is not None:
                self.digests[len(self.bodies)] = digest
        self.bodies.append(record)

    def _link(self) -> None:
        """Write what was added: one entry for all records of an event that have nothing private between them."""
        bodies, parts, digests = self.bodies, self.parts, self.digests
        if not bodies:
            return
        if len(digests) == len(bodies) <= ENTRY_RECORDS_MAX:  # places rise, so values and digests are in order
            self.writes.append((VIEW, self.view.linked(bodies, parts.values(), digests.values())))
        else:
            self._link_any()
        bodies.clear()
        parts.clear()
        digests.clear()

    def _link_any(self) -> None:
        bodies, parts, digests = self.bodies, self.parts, self.digests
        values = [parts.get(place, b"") for place in range(len(bodies))] if parts else [b""] * len(bodies)
        for at in range(0, len(bodies), ENTRY_RECORDS_MAX):
            until = at + ENTRY_RECORDS_MAX
            known = {place - at: digest for place, digest in digests.items()} if at else digests
            self.writes.append((VIEW, self.view.entry(bodies[at:until], values[at:until], known)))

    def take_writes(self) -> list[tuple[str, bytes]]:
        self._link()
        writes, self.writes = self.writes, []
        return writes


def _pool_in(record: Record) -> list[Any]:
    try:
        values = unpack_value((record.value or b"")[SALT_BYTES:])
    except CodecError:
        values = None
    if type(values) is not list or type(getattr(record.body, "number", None)) is not int:
        raise VerificationFailed(f"the private ledger cannot be continued: record {record.index} holds no draws")
    return values


def salted(value: bytes, salt: bytes) -> bytes:
    """Return the value part of a record. Without salt, its digest in a skeleton would let the value be guessed."""
    if not value:
        return b""
    if len(salt) != SALT_BYTES:
        raise ValueError("a value is recorded with its salt")
    return salt + value
