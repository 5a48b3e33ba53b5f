from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import VerificationFailed
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    INPUTS,
    LEDGER_MAGIC,
    MET,
    NOTE,
    OPENED,
    POOL,
    RECEIVED,
    SALT_BYTES,
    SENT,
    WOKEN,
    Chain,
    Record,
    chain_problem,
    read,
    to_skeleton,
    whole_length,
)
from p2pdp.wire.codec import pack_value, unpack_value

Writes = list[tuple[str, bytes]]
Line = tuple[str, int]

SCALAR = ("gaussian", 2.0**20, 0, [])
VECTOR = ("laplace", 3.0, 0, [2])


def draw(journal: Journal, body: tuple[Any, ...], pick: Callable[[], tuple[int, int]]) -> tuple[int, int] | None:
    """Where a draw was taken from, or None if it stood there; as `host.draws` does it."""
    if journal.replaying:
        journal.drawn_before(body)
        return None
    place = pick()
    journal.append(DRAWN, (*body, *place))
    return place


def choose(journal: Journal, options: int, pick: Callable[[int], int]) -> int:
    if journal.replaying:
        return journal.chosen_before(options)
    picked = pick(options)
    journal.append(CHOSEN, (options, picked))
    return picked


class Process:
    """One life of a peer: what it draws and its salts are its own; what it does is the script's.

    After each `every` lines of it what there is to write is written.
    """

    def __init__(self, life: int, view: bytes = b"", private: bytes = b"", every: int = 1) -> None:
        self.every = every
        self.writes: Writes = []
        self.pools: dict[int, list[Any]] = {}
        self.random = random.Random(life)  # noqa: S311 - a test's values protect nobody
        self.journal = Journal(view, private)
        self.drawn: list[Any] = []
        self.open: dict[str, tuple[int, int]] = {}

    def salt(self) -> bytes:
        return self.random.randbytes(SALT_BYTES)

    def pick(self, terms: tuple[Any, ...]) -> tuple[int, int]:
        """The next value of a pool of three."""
        pool, offset = self.open.get(terms[0], (-1, 3))
        if offset == 3:
            if terms[3]:
                values: list[Any] = [np.array([self.random.getrandbits(40), 7], dtype=np.int64) for _ in range(3)]
            else:
                values = [self.random.getrandbits(40) for _ in range(3)]
            pool, offset = self.journal.add_pool(("test", *terms, 3), values, self.salt()), 0
            self.pools[pool] = values
        self.open[terms[0]] = (pool, offset + 1)
        return pool, offset

    def draw(self, terms: tuple[Any, ...]) -> Any:
        body = (len(self.drawn), *terms)
        if self.journal.replaying:
            value = self.journal.drawn_before(body)
        else:
            pool, offset = self.pick(terms)
            self.journal.append(DRAWN, (*body, pool, offset))
            value = self.pools[pool][offset]
        self.drawn.append(np.asarray(value).tolist())
        return value

    def run(self, script: list[Line]) -> None:
        """Every value that is sent follows from what was drawn and chosen, as in a protocol."""
        journal = self.journal
        if journal.private_state()[0] == 0:
            journal.append_private(INPUTS, (None, 2), pack_value([1, 2]), self.salt())
        journal.append(OPENED, (VIEW, b"run", 3))
        state = 0
        for line, (what, number) in enumerate(script):
            if line % self.every == 0:
                self.writes += journal.take_writes()
            if what == "woken":
                journal.append(WOKEN, (float(number),))
            elif what == "received":
                journal.append(
                    RECEIVED, (0.5, number, b"message", bytes(16)), pack_value(number), bytes([number]) * SALT_BYTES
                )
            elif what == "drawn":
                state += self.draw(SCALAR)
            elif what == "vector":
                state += int(self.draw(VECTOR)[0])
            elif what == "chosen":
                state += choose(journal, number + 1, self.random.randrange)
            elif what == "note":
                journal.note("late", self.salt())
            else:
                salt = b"" if journal.replaying else self.salt()
                part = journal.append(SENT, (number, b"message"), pack_value(state), salt)
                assert part[SALT_BYTES:] == pack_value(state)
        self.writes += journal.take_writes()
        journal.append(CLOSED, (b"signature",))
        self.writes += journal.take_writes()


SCRIPTS = st.lists(
    st.tuples(st.sampled_from("woken received drawn vector chosen sent note".split()), st.integers(0, 9)), max_size=14
)
EXAMPLE: list[Line] = [
    ("woken", 1),
    ("drawn", 0),
    ("sent", 4),
    ("received", 7),
    ("drawn", 0),
    ("vector", 0),
    ("chosen", 9),
    ("sent", 5),
    ("note", 0),
    ("drawn", 0),
    ("drawn", 0),
    ("sent", 6),
]


def files(writes: Writes) -> dict[str, bytes]:
    joined = {VIEW: b"", PRIVATE: b""}
    for name, data in writes:
        joined[name] += data
    return joined


def lived(script: list[Line], life: int = 1, every: int = 1) -> tuple[Process, Writes]:
    process = Process(life, every=every)
    process.run(script)
    return process, process.writes


def resumed(script: list[Line], stored: dict[str, bytes], life: int) -> tuple[Process, dict[str, bytes]]:
    """A restart: torn tails are cut off, then the same script is run again."""
    kept = {name: data[: whole_length(data)] for name, data in stored.items()}
    process = Process(life, kept[VIEW], kept[PRIVATE])
    process.run(script)
    more = files(process.writes)
    return process, {name: kept[name] + more[name] for name in kept}


def draws_in(view: bytes) -> list[Record]:
    return [record for record in read(view).records if record.kind == DRAWN]


@given(
    script=SCRIPTS,
    every=st.integers(1, 20),
    cut=st.integers(0, 10**6),
    torn=st.integers(0, 200),
    again=st.booleans(),
)
def test_a_restart_at_any_write_goes_on_where_the_ledger_ends(
    script: list[Line], every: int, cut: int, torn: int, again: bool
) -> None:
    before, writes = lived(script, every=every)
    whole = files(writes)
    at = cut % (len(writes) + 1)
    stored = files(writes[:at])
    if at < len(writes):  # the crash tore the next write
        name, data = writes[at]
        stored[name] += data[: min(torn, len(data) - 1)]
    kept = {name: data[: whole_length(data)] for name, data in stored.items()}
    after, ledgers = resumed(script, stored, 2)
    if again:  # and once more, from the end
        after, second = resumed(script, ledgers, 3)
        assert second == ledgers
    for name in (VIEW, PRIVATE):
        assert ledgers[name].startswith(kept[name])
        assert chain_problem(read(ledgers[name])) is None
    used = len(draws_in(kept[VIEW])) if kept[VIEW] else 0
    assert after.drawn[:used] == before.drawn[:used]
    kinds = [[record.kind for record in read(view).records] for view in (whole[VIEW], ledgers[VIEW])]
    assert kinds[0] == kinds[1]
    assert after.journal.closed
    assert not after.journal.replaying
    pairs = [(record.body.pool, record.body.offset) for record in draws_in(ledgers[VIEW])]
    assert len(set(pairs)) == len(pairs)


def test_a_restart_at_every_byte_of_an_example() -> None:
    before, writes = lived(EXAMPLE)
    for at, (name, data) in enumerate(writes):
        for length in {0, 1, len(data) // 2, len(data) - 1}:
            stored = files(writes[:at])
            stored[name] += data[:length]
            after, ledgers = resumed(EXAMPLE, stored, 2)
            used = len(draws_in(files(writes[:at])[VIEW])) if writes[0] in writes[:at] else 0
            assert after.drawn[:used] == before.drawn[:used]
            assert chain_problem(read(ledgers[VIEW])) is None


def test_running_a_whole_ledger_again_writes_nothing() -> None:
    before, writes = lived(EXAMPLE)
    whole = files(writes)
    after = Process(2, whole[VIEW], whole[PRIVATE])
    after.run([line for line in EXAMPLE if line[0] != "note"])
    assert after.writes == []
    assert after.drawn == before.drawn
    assert (after.journal.count, after.journal.head) == (before.journal.count, before.journal.head)
    assert after.journal.private_state() == before.journal.private_state()
    assert unpack_value(after.journal.inputs or b"") == [1, 2]


def test_inputs_and_pools_are_written_before_what_uses_them() -> None:
    _, writes = lived(EXAMPLE)
    stored: dict[str, bytes] = {VIEW: b"", PRIVATE: b""}
    for name, data in writes:
        stored[name] += data
        pools = (
            {record.body.number for record in read(stored[PRIVATE]).records if record.kind == POOL}
            if (stored[PRIVATE])
            else set()
        )
        assert {record.body.pool for record in draws_in(stored[VIEW])} <= pools
    private = read(stored[PRIVATE]).records
    assert private[0].kind == INPUTS
    assert [record.body.event for record in private if record.kind == POOL] == [None] * 3
    (note,) = (record for record in private if record.kind == NOTE)
    assert note.body == (9,)
    assert (note.value or b"")[SALT_BYTES:] == b"late"


def test_a_value_of_a_pool_can_be_looked_up_in_the_private_ledger() -> None:
    process, writes = lived(EXAMPLE)
    private = b"".join(data for name, data in writes if name == PRIVATE)
    view = b"".join(data for name, data in writes if name == VIEW)
    journal = Journal(private=private)
    found = [journal.drawn(record.body.pool, record.body.offset) for record in draws_in(view)]
    assert [np.array_equal(one, other) for one, other in zip(found, process.drawn, strict=True)] == [True] * len(found)
    assert found


def test_the_view_holds_no_value_of_a_draw() -> None:
    process, writes = lived([("drawn", 0), ("vector", 0), ("chosen", 5)])
    view = files(writes)[VIEW]
    for value in (process.drawn[0], process.drawn[1][0]):
        for form in (pack_value(value)[1:], str(value).encode(), value.to_bytes(8, "big")):
            assert form not in view
    assert [record.value for record in read(view).records] == [b""] * 5


def test_the_unused_rest_of_pools_is_dropped() -> None:
    script: list[Line] = [("drawn", 0)] * 3
    before, writes = lived(script)
    whole = files(writes)
    pool = next(record for record in read(whole[PRIVATE]).records if record.kind == POOL)
    first = unpack_value((pool.value or b"")[SALT_BYTES:])
    view = b"".join([data for name, data in writes if name == VIEW][:3])  # magic, opening, one draw
    after, ledgers = resumed(script, {VIEW: view, PRIVATE: whole[PRIVATE]}, 2)
    assert after.drawn[0] == before.drawn[0] == first[0]
    assert not {first[1], first[2]} & set(after.drawn)
    assert [record.body[-2:] for record in draws_in(ledgers[VIEW])] == [(0, 0), (1, 0), (1, 1)]


def test_salts_first_drawn_are_kept_and_each_is_used_once() -> None:
    _, writes = lived(EXAMPLE)
    stored = files(writes)
    sent = [record for record in read(stored[VIEW]).records if record.kind == SENT]
    cut = b"".join([data for name, data in writes if name == VIEW][: sent[-1].index + 1])
    _, ledgers = resumed(EXAMPLE, {VIEW: cut, PRIVATE: stored[PRIVATE]}, 2)
    again = [record for record in read(ledgers[VIEW]).records if record.kind == SENT]
    assert [record.value for record in again[:-1]] == [record.value for record in sent[:-1]]
    assert (again[-1].value or b"")[:SALT_BYTES] != (sent[-1].value or b"")[:SALT_BYTES]
    salted = [record.value[:SALT_BYTES] for name in ledgers for record in read(ledgers[name]).records if record.value]
    assert len(set(salted)) == len(salted)


@pytest.mark.parametrize("salt", [b"", b"short", bytes(SALT_BYTES + 1)])
def test_a_value_without_a_proper_salt_is_never_written(salt: bytes) -> None:
    journal = Journal()
    journal.take_writes()
    with pytest.raises(ValueError, match="salt"):
        journal.append(SENT, (1, b"message"), b"value", salt)
    with pytest.raises(ValueError, match="salt"):
        journal.append_private(INPUTS, (None, 1), b"value", salt)
    assert journal.take_writes() == []
    assert journal.count == 0


@pytest.mark.parametrize("position", range(len(EXAMPLE)))
@pytest.mark.parametrize("other", [("woken", 8), ("sent", 8), ("drawn", 0), ("vector", 0), ("chosen", 3)])
def test_a_ledger_that_does_not_follow_from_the_script_is_refused(position: int, other: Line) -> None:
    _, writes = lived(EXAMPLE)
    whole = files(writes)
    if EXAMPLE[position][0] in ("note", other[0]):
        return
    script = [*EXAMPLE[:position], other, *EXAMPLE[position + 1 :]]
    with pytest.raises(VerificationFailed):
        Process(2, whole[VIEW], whole[PRIVATE]).run(script)


def test_another_value_at_the_same_place_is_refused() -> None:
    _, writes = lived(EXAMPLE)
    whole = files(writes)
    journal = Journal(whole[VIEW], whole[PRIVATE])
    journal.append(OPENED, (VIEW, b"run", 3))
    journal.append(WOKEN, (1.0,))
    draw(journal, (0, *SCALAR), lambda: (0, 0))
    with pytest.raises(VerificationFailed, match=r"record 3 .* sent stands there, sent was expected"):
        journal.append(SENT, (4, b"message"), pack_value(12345))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("the draw that belongs there", lambda journal: draw(journal, (1, *SCALAR), lambda: (0, 0))),
        ("the draw that belongs there", lambda journal: draw(journal, (0, *VECTOR), lambda: (0, 0))),
        ("the choice that belongs there", lambda journal: choose(journal, 3, lambda _: 0)),
        ("drawn stands there, woken was expected", lambda journal: journal.append(WOKEN, (1.0,))),
    ],
)
def test_errors_name_the_record_and_show_no_value(what: str, change: Any) -> None:
    process, writes = lived([("drawn", 0)])
    whole = files(writes)
    journal = Journal(whole[VIEW], whole[PRIVATE])
    journal.append(OPENED, (VIEW, b"run", 3))
    with pytest.raises(VerificationFailed, match=f"record 1 .*{what}") as caught:
        change(journal)
    assert str(process.drawn[0]) not in str(caught.value)


def test_a_draw_whose_pool_is_gone_is_refused() -> None:
    _, writes = lived(EXAMPLE)
    whole = files(writes)
    with pytest.raises(VerificationFailed, match=r"record 2 .* names a draw that the private ledger does not hold"):
        Process(2, whole[VIEW], LEDGER_MAGIC).run(EXAMPLE)


@pytest.mark.parametrize("pair", [(0, 3), (0, -1), (9, 0), ([], 0), (0, "1")])
def test_a_draw_that_names_what_no_pool_holds_is_refused(pair: tuple[Any, Any]) -> None:
    _, writes = lived([("drawn", 0)])
    view = Chain()
    stored = LEDGER_MAGIC + view.append(OPENED, (VIEW, b"run", 3)) + view.append(DRAWN, (0, *SCALAR, *pair))
    with pytest.raises(VerificationFailed, match="private ledger does not hold"):
        Process(2, stored, files(writes)[PRIVATE]).run([("drawn", 0)])


@pytest.mark.parametrize("name", [VIEW, PRIVATE])
def test_altered_foreign_and_bare_ledgers_cannot_be_continued(name: str) -> None:
    _, writes = lived(EXAMPLE)
    whole = files(writes)
    altered = bytearray(whole[name])
    altered[-40] ^= 1
    parts = [data for which, data in writes if which == name]
    for bad in (
        b"garbage, and more of it",
        LEDGER_MAGIC[:5],
        to_skeleton(whole[name]),
        LEDGER_MAGIC + b"\x05",
        b"".join([*parts[:2], *parts[3:]]),
    ):
        with pytest.raises(VerificationFailed, match=f"the {name} ledger cannot be continued"):
            Journal(**{**whole, name: bad})


def test_a_closed_journal_says_so_once_its_end_is_reached() -> None:
    _, writes = lived(EXAMPLE)
    whole = files(writes)
    journal = Journal(whole[VIEW], whole[PRIVATE])
    assert not journal.closed
    while (record := journal.next_stored()) is not None:
        assert (journal.count, journal.head) == (record.index, record.previous)
        assert journal.take_stored() is record
    assert journal.closed
    assert not journal.replaying
    assert journal.stored()[-1].kind == CLOSED
    assert journal.count == len(journal.stored())


def test_the_private_ledger_tells_whether_it_was_closed() -> None:
    journal = Journal()
    journal.append_private(CLOSED, (b"signature",), b"", b"")
    stored = files(journal.take_writes())
    assert not journal.private_closed  # its host closed it, and knows
    assert Journal(stored[VIEW], stored[PRIVATE]).private_closed


def test_pools_of_this_life_stay_in_the_private_ledger_only() -> None:
    journal = Journal()
    numbers = [journal.add_pool(("test", *SCALAR, 1), [value], bytes(SALT_BYTES)) for value in (11, 12, 13)]
    assert numbers == [0, 1, 2]
    with pytest.raises(KeyError):
        journal.drawn(0, 0)
    again = Journal(b"", files(journal.take_writes())[PRIVATE])
    assert again.pools_drawn == 3
    assert [again.drawn(number, 0) for number in numbers] == [11, 12, 13]
    again.add_pool(("test", *SCALAR, 1), [14], bytes(SALT_BYTES))
    with pytest.raises(KeyError):  # a life that draws anew asks for none of an earlier one
        again.drawn(0, 0)


@pytest.mark.parametrize("body", [(5, 5), (5, -1), (5,), (), (4, 1), (5, None)])
def test_a_choice_that_was_none_of_its_options_is_refused(body: tuple[Any, ...]) -> None:
    stored = LEDGER_MAGIC + Chain().append(CHOSEN, body)
    with pytest.raises(VerificationFailed, match="record 0"):
        choose(Journal(stored), 5, lambda _: 0)


def test_a_choice_is_recorded_with_its_options() -> None:
    journal = Journal()
    assert choose(journal, 5, lambda options: options - 1) == 4
    (record,) = read(files(journal.take_writes())[VIEW]).records
    assert (record.kind, record.body) == (CHOSEN, (5, 4))


def test_a_meeting_is_recorded_and_not_tossed_for_again() -> None:
    journal = Journal()
    assert journal.meet(3, lambda number: [number, 7]) == [3, 7]
    stored = files(journal.take_writes())[VIEW]
    (record,) = read(stored).records
    assert (record.kind, record.body) == (MET, (3, [3, 7]))
    assert Journal(stored).meet(3, lambda _: []) == [3, 7]
    with pytest.raises(VerificationFailed, match="record 0"):
        Journal(stored).meet(4, lambda _: [])
    with pytest.raises(VerificationFailed, match="record 0"):
        choose(Journal(stored), 5, lambda _: 0)


def test_the_text_of_a_journal_shows_no_value() -> None:
    process, _ = lived([("drawn", 0)])
    assert str(process.drawn[0]) not in repr(process.journal)
