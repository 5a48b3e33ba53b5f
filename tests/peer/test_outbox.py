from __future__ import annotations

from p2pdp.core.step import Custody, Fault, Message, Output, Send, Step
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, OWN, PUBLISHED, SALT_BYTES, SENT, STARTED, WOKEN, Record
from p2pdp.peer.effects import Timing
from p2pdp.peer.outbox import LOGGED_MAX, FaultLog, Outbox
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toys import credentials

STEP = Step(
    sends=(Send(1, Message("token", (0, 3), 17), Custody(0, 3)), Send(0, Message("note")), Send(1, Message("bare"))),
    wake_at_s=9.0,
    outputs=(Output("saw", (4,), 5), Output("seen so far", (1,), recorded=False)),
    faults=(Fault("late", 1),),
)


def outbox(journal: Journal) -> tuple[Outbox, Peers, FaultLog]:
    entropy = SeededEntropy(5, "outbox")
    peers, notes = Peers(credentials(0), entropy, Timing()), FaultLog(journal, entropy)
    return Outbox(0, journal, peers, notes, entropy), peers, notes


def written(journal: Journal) -> tuple[list[Record], dict[str, bytes]]:
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in journal.take_writes():
        files[name] += data
    return records.read(files[VIEW]).records, files


def test_what_is_published_and_sent_is_recorded_in_order_and_what_is_its_own_comes_back() -> None:
    journal = Journal()
    out, peers, notes = outbox(journal)
    assert out.carry_out(STEP, 2.0) == [STEP.sends[1]]
    out.to_itself(STEP.sends[1].message, 2.0)
    assert out.take_outputs() == STEP.outputs
    assert out.take_outputs() == ()
    assert notes.take_new() == STEP.faults
    assert (peers.messages_sent, [peer for peer, _ in peers.frames]) == (2, [1, 1])
    found = [(record.kind, record.body) for record in written(journal)[0]]
    assert found == [
        (PUBLISHED, (pack_message(Message("saw", (4,))),)),
        (SENT, (1, pack_message(Message("token", (0, 3))))),
        (SENT, (1, pack_message(Message("bare")))),
        (OWN, (2.0, pack_message(Message("note")))),
    ]


def test_a_value_has_a_salt_which_goes_along_and_what_has_none_has_neither() -> None:
    journal = Journal()
    out, peers, _ = outbox(journal)
    out.carry_out(STEP, 2.0)
    parts = [record.value or b"" for record in written(journal)[0]]
    assert [part[SALT_BYTES:] for part in parts] == [pack_value(5), pack_value(17), b""]
    assert parts[0][:SALT_BYTES] != parts[1][:SALT_BYTES]
    assert [item.value for item in peers.link(1).in_flight] == parts[1:]


def test_a_replay_sends_nothing() -> None:
    first = Journal()
    before = outbox(first)[0]
    before.carry_out(STEP, 2.0)
    before.to_itself(STEP.sends[1].message, 2.0)
    files = written(first)[1]
    again = Journal(files[VIEW], files[PRIVATE])
    out, peers, notes = outbox(again)
    assert out.carry_out(STEP, 2.0) == [STEP.sends[1]]
    assert (peers.frames, peers.messages_sent, again.replaying) == ([], 0, True)
    out.to_itself(STEP.sends[1].message, 2.0)
    assert not again.replaying
    assert out.take_outputs() == STEP.outputs, "a restart acts on them again"
    assert (notes.counts, notes.take_new()) == ({"late": 1}, ())
    assert not peers.link(1).in_flight


def private_records(journal: Journal) -> list[records.Record]:
    data = b"".join(data for name, data in journal.take_writes() if name == PRIVATE)
    return records.read(data).records


def notes_on(journal: Journal) -> FaultLog:
    return FaultLog(journal, SeededEntropy(1, "notes"))


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
    for _ in range(3 * LOGGED_MAX):
        notes.add(Fault("malformed"))
    assert len(private_records(journal)) == LOGGED_MAX
    assert notes.counts == {"malformed": 3 * LOGGED_MAX}


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
