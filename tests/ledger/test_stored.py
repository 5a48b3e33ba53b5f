from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import VerificationFailed
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import (
    LEDGER_MAGIC,
    NOTE,
    OPENED,
    SENT,
    WOKEN,
    Chain,
    LedgerError,
    chain_problem,
    read,
    to_skeleton,
    whole_length,
)
from p2pdp.ledger.stored import InMemory, StoredRecords, first_of, skeleton_of, stream, whole_end
from tests.support.known import cuts, flips


def ledger(entries: int = 5) -> bytes:
    chain = Chain()
    data = [LEDGER_MAGIC, chain.append(OPENED, (VIEW, bytes(16), 3))]
    for number in range(entries):
        records = ((WOKEN, float(number)), (SENT, number, b"message"))
        data.append(chain.entry(records, (b"", bytes([number % 256]) * 20)))
    return b"".join(data)


def streamed(data: bytes) -> object:
    source = InMemory(data)
    try:
        whole = whole_end(source)
        kept = InMemory(data[:whole])
        records = [record for _, found in stream(kept) for record in found] if whole else []
    except LedgerError as error:
        return str(error)
    return whole, records


def at_once(data: bytes) -> object:
    try:
        whole = whole_length(data)
        records = read(data[:whole]).records if whole else []
    except LedgerError as error:
        return str(error)
    return whole, records


def test_a_stream_gives_what_reading_at_once_gives_however_a_ledger_is_damaged() -> None:
    good = ledger(3)
    assert streamed(good) == at_once(good)
    damaged = [*flips(good), *cuts(good), b"", good + bytes(40), good + good[len(LEDGER_MAGIC) :], good + b"\xff" * 99]
    for data in damaged:
        assert streamed(data) == at_once(data)


@given(tail=st.binary(max_size=80), kept=st.integers(0, len(ledger(2))))
def test_and_whatever_follows(tail: bytes, kept: int) -> None:
    data = ledger(2)[:kept] + tail
    assert streamed(data) == at_once(data)


def test_a_skeleton_is_not_what_a_restart_reads() -> None:
    with pytest.raises(LedgerError, match="skeleton"):
        list(stream(InMemory(to_skeleton(ledger()))))


def test_the_first_record_is_read_without_the_others() -> None:
    good = ledger()
    for data in (good, skeleton_of(good)):
        for kept in (data, data[: len(data) // 2], InMemory(data)):
            assert first_of(kept) == read(data).records[0]
    for empty in (LEDGER_MAGIC, good[: len(LEDGER_MAGIC) + 9]):
        assert first_of(empty) is None
    with pytest.raises(LedgerError):
        first_of(b"")


def test_an_entry_is_read_at_its_place() -> None:
    data = ledger()
    places = [(at, found) for at, found in stream(InMemory(data))]
    assert places[0][0] == len(LEDGER_MAGIC)
    for at, found in places:
        assert next(stream(InMemory(data), at)) == (at, found)


def test_stored_records_are_a_sequence_that_keeps_the_last_one_only() -> None:
    data = ledger()
    known = read(data).records
    assert chain_problem(read(data)) is None
    stored = StoredRecords(InMemory(data), len(known), known[-1])
    assert list(stored) == list(stored) == known
    assert (len(stored), stored[-1], stored[0], stored[3], stored[1:4]) == (
        len(known), known[-1], known[0], known[3], known[1:4],
    )  # fmt: skip
    assert stored[-1] is known[-1]
    for outside in (len(known), -len(known) - 1):
        with pytest.raises(IndexError):
            stored[outside]
    assert repr(stored) == "StoredRecords(11)"
    nothing = StoredRecords(InMemory(b""), 0, None)
    assert (list(nothing), bool(nothing)) == ([], False)


def peak_of_restart(view: bytes, private: bytes) -> int:
    """The most memory, in bytes, that is used beside the ledgers' own while one is replayed."""
    tracemalloc.start()
    try:
        journal = Journal(view, private)
        for _ in journal.stored():
            pass
        while journal.next_stored() is not None:
            journal.take_stored()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_restart_does_not_grow_with_the_ledger() -> None:
    notes = Chain()
    private = LEDGER_MAGIC + b"".join(notes.append(NOTE, (None,), bytes(40)) for _ in range(2000))
    small, large = ledger(200), ledger(8000)
    peak_of_restart(small, LEDGER_MAGIC)
    few, many = peak_of_restart(small, LEDGER_MAGIC), peak_of_restart(large, private)
    assert len(large) > 700_000
    assert many < few + 50_000


def test_pools_are_read_again_when_a_replay_comes_to_them() -> None:
    first = Journal()
    values = [[random.Random(number).getrandbits(40) for _ in range(3)] for number in range(60)]  # noqa: S311
    for batch in values:
        first.add_pool(("test", "gaussian", 4.0, 0.0, [], 3), batch, bytes(16))
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in first.take_writes():
        files[name] += data
    again = Journal(b"", files[PRIVATE])
    order = [*range(60), 0, 59, 30, 1]
    assert [again.drawn(number, 2) for number in order] == [values[number][2] for number in order]
    for outside in (60, -1):
        with pytest.raises(KeyError):
            again.drawn(outside, 0)


def test_pools_that_are_not_numbered_in_order_are_refused() -> None:
    first = Journal()
    first.pools_drawn = 3
    first.add_pool(("test", "gaussian", 4.0, 0.0, [], 1), [1], bytes(16))
    private = b"".join(data for name, data in first.take_writes() if name == PRIVATE)
    with pytest.raises(VerificationFailed, match="not the pool"):
        Journal(b"", private)
