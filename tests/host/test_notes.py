from __future__ import annotations

from p2pdp.core.step import Fault
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.host.notes import NOTES_MAX, Notes
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, SALT_BYTES, STARTED, WOKEN


def private_records(journal: Journal) -> list[records.Record]:
    data = b"".join(data for name, data in journal.take_writes() if name == PRIVATE)
    return records.read(data).records


def notes_on(journal: Journal) -> Notes:
    return Notes(journal, SeededEntropy(1, "notes"))


def test_a_fault_is_counted_noted_with_its_event_and_handed_out_once() -> None:
    journal = Journal()
    journal.append(STARTED, (1.0,))
    notes = notes_on(journal)
    notes.add(Fault("gap", 3))
    assert notes.take_new() == (Fault("gap", 3),)
    assert notes.take_new() == ()
    assert notes.counts == {"gap": 1}
    (note,) = private_records(journal)
    assert (note.body, (note.value or b"")[SALT_BYTES:]) == ((1,), b"gap")


def test_the_same_fault_twice_has_two_salts() -> None:
    journal = Journal()
    notes = notes_on(journal)
    notes.add(Fault("gap"))
    notes.add(Fault("gap"))
    first, second = private_records(journal)
    assert first.digest != second.digest


def test_what_a_replay_tells_again_is_counted_only() -> None:
    journal = Journal()
    notes = notes_on(journal)
    notes.add(Fault("gap"), again=True)
    assert (notes.counts, notes.take_new(), private_records(journal)) == ({"gap": 1}, (), [])


def test_before_a_replay_a_new_fault_belongs_to_the_end_of_the_ledger() -> None:
    first = Journal()
    first.append(STARTED, (1.0,))
    first.append(WOKEN, (2.0,))
    view = b"".join(data for name, data in first.take_writes() if name == VIEW)
    journal = Journal(view)
    notes_on(journal).add(Fault("rolled_back", 3))
    (note,) = private_records(journal)
    assert note.body == (2,)


def test_notes_are_capped_and_counts_are_not() -> None:
    journal = Journal()
    notes = notes_on(journal)
    for _ in range(3 * NOTES_MAX):
        notes.add(Fault("malformed"))
    assert len(private_records(journal)) == NOTES_MAX
    assert notes.counts == {"malformed": 3 * NOTES_MAX}


def test_nothing_is_noted_after_the_end_of_either_ledger() -> None:
    for end in (VIEW, PRIVATE):
        journal = Journal()
        if end == VIEW:
            journal.append(CLOSED, (b"",))
        else:
            journal.append_private(CLOSED, (b"",), b"", b"")
            data = b"".join(data for name, data in journal.take_writes() if name == PRIVATE)
            journal = Journal(b"", data)
        notes = notes_on(journal)
        journal.take_writes()
        notes.add(Fault("malformed"))
        assert (journal.take_writes(), notes.counts) == ([], {"malformed": 1})
