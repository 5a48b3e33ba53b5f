"""A peer's two ledgers as one write-ahead log that can be replayed.

Guarantee: `append` hands out the bytes to be written, in order, and the caller writes them
before any effect leaves the process. A journal made from stored bytes first *replays*: the
caller performs the same handlers again, and each `append` must then ask for exactly the record
that stands there; `draw` and `choose` give back what was recorded. When the stored records are
used up, even in the middle of a handler, the journal continues by writing. So a restart at any
record ends in the same state, with the noise first drawn.

`view` holds what happened without values of draws; `private` holds inputs and the values of
draws, which are written first. Entropy is not drawn here: salts come in with the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from p2pdp.core.errors import VerificationFailed
from p2pdp.ledger import records
from p2pdp.ledger.bodies import Drawn, Note, Pool
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    ENTRY_RECORDS_MAX,
    INPUTS,
    LEDGER_MAGIC,
    MET,
    NOTE,
    POOL,
    SALT_BYTES,
    Chain,
    Record,
)
from p2pdp.wire.codec import pack_value, unpack_value

VIEW: Final = "view"
PRIVATE: Final = "private"


class Journal:
    def __init__(self, view: bytes = b"", private: bytes = b"") -> None:
        self.writes: list[tuple[str, bytes]] = []
        self.bodies: list[tuple[Any, ...]] = []  # view records that are not linked yet: kind and body
        self.parts: dict[int, bytes] = {}  # and by their places the value parts of those that have one
        self._chains = {VIEW: Chain(), PRIVATE: Chain()}
        self._stored: list[Record] = []
        self._cursor = 0
        self._pools: dict[int, list[Any]] = {}
        self.inputs: bytes | None = None
        self.pools_drawn = 0
        self.closed = False
        self.private_closed = False
        self._load(view, private)
        self.replaying = bool(self._stored)
        self.view = self._chains[VIEW]

    def _load(self, view: bytes, private: bytes) -> None:
        if not view:
            self.writes.append((VIEW, LEDGER_MAGIC))
        else:
            self._stored = self._continue(VIEW, view)
        if not private:
            self.writes.append((PRIVATE, LEDGER_MAGIC))
            return
        for record in self._continue(PRIVATE, private):
            value = record.value or b""
            if record.kind == INPUTS:
                self.inputs = value[SALT_BYTES:]
            elif record.kind == CLOSED:
                self.private_closed = True
            elif record.kind == POOL:
                self.pools_drawn = record.body.number + 1
                self._pools[record.body.number] = unpack_value(value[SALT_BYTES:])

    def _continue(self, name: str, data: bytes) -> list[Record]:
        try:
            contents = records.read(data)
        except records.LedgerError as error:
            raise VerificationFailed(f"the {name} ledger cannot be continued: {error}") from None
        problem = records.chain_problem(contents)
        if contents.skeleton or problem is not None:
            what = "it is a skeleton" if problem is None else f"record {problem[0]} {problem[1]}"
            raise VerificationFailed(f"the {name} ledger cannot be continued: {what}")
        if contents.records:
            last = contents.records[-1]
            self._chains[name] = Chain(last.index + 1, last.hash)
        return contents.records

    @property
    def count(self) -> int:
        """Return the index of the next view record; in a replay, the index that it had then."""
        if self.replaying:
            return self._stored[self._cursor].index
        return self.view.count + len(self.bodies)

    @property
    def head(self) -> bytes:
        if self.replaying:
            return self._stored[self._cursor].previous
        self._link()
        return self.view.head

    def stored(self) -> list[Record]:
        """Return the stored view records, from which counts are rebuilt before the replay begins."""
        return self._stored

    def next_stored(self) -> Record | None:
        return self._stored[self._cursor] if self.replaying else None

    def take_stored(self) -> Record:
        """Return the current record of a replay, and go on to the next."""
        record = self._stored[self._cursor]
        self._cursor += 1
        self.replaying = self._cursor < len(self._stored)
        self.closed = self.closed or record.kind == CLOSED
        return record

    def append(self, kind: int, body: tuple[Any, ...], value: bytes = b"", salt: bytes = b"") -> bytes:
        """Write one view record, and return its value part (salt included) as it stands in the ledger.

        In a replay the record must be the one that stands there; its salt is the one first drawn.
        """
        if self.replaying:
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
        part = _salted(value, salt) if value else b""
        self.add(part, kind, *body)
        if kind == CLOSED:
            self.closed = True
        return part

    def append_private(self, kind: int, body: tuple[Any, ...], value: bytes, salt: bytes) -> None:
        """Write one private record. A replay never calls this: what it needs is stored already."""
        self._link()
        self.writes.append((PRIVATE, self._chains[PRIVATE].append(kind, body, _salted(value, salt))))

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
        return number

    def drawn_before(self, body: tuple[Any, ...]) -> Any:
        """Return the value of the next draw of a replay, which must have this number and these terms."""
        record = self.take_stored()
        draw: Drawn = record.body
        if record.kind != DRAWN or len(draw) != len(Drawn._fields) or (draw.number, *draw.terms) != body:
            raise VerificationFailed(f"record {record.index} of the view ledger is not the draw that belongs there")
        pool, offset = draw.pool, draw.offset
        values = self._pools.get(pool, []) if type(pool) is int else []
        if type(offset) is not int or not 0 <= offset < len(values):
            raise VerificationFailed(
                f"record {record.index} of the view ledger names a draw that the private ledger does not hold"
            )
        return values[offset]

    def drawn(self, pool: int, offset: int) -> Any:
        """Return a value of a pool that the private ledger holds."""
        return self._pools[pool][offset]

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

    def add(self, part: bytes, *record: Any) -> None:
        """Add a view record, kind and fields of its body. A replay never calls this."""
        if part:
            self.parts[len(self.bodies)] = part
        self.bodies.append(record)

    def _link(self) -> None:
        """Write what was added: one entry for all records of an event that have nothing private between them."""
        bodies, parts = self.bodies, self.parts
        if not bodies:
            return
        values = [parts.get(place, b"") for place in range(len(bodies))] if parts else [b""] * len(bodies)
        for at in range(0, len(bodies), ENTRY_RECORDS_MAX):
            until = at + ENTRY_RECORDS_MAX
            self.writes.append((VIEW, self.view.entry(bodies[at:until], values[at:until])))
        bodies.clear()
        parts.clear()

    def take_writes(self) -> list[tuple[str, bytes]]:
        self._link()
        writes, self.writes = self.writes, []
        return writes


def _salted(value: bytes, salt: bytes) -> bytes:
    """Return the value part of a record. Without salt, its digest in a skeleton would let the value be guessed."""
    if not value:
        return b""
    if len(salt) != SALT_BYTES:
        raise ValueError("a value is recorded with its salt")
    return salt + value
