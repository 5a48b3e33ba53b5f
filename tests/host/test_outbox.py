from __future__ import annotations

from p2pdp.core.step import Custody, Fault, Message, Output, Send, Step
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.host.effects import Timing
from p2pdp.host.notes import Notes
from p2pdp.host.outbox import Outbox
from p2pdp.host.peers import Peers
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import OWN, PUBLISHED, SALT_BYTES, SENT, Record
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toys import seat

STEP = Step(
    sends=(Send(1, Message("token", (0, 3), 17), Custody(0, 3)), Send(0, Message("note")), Send(1, Message("bare"))),
    wake_at_s=9.0,
    outputs=(Output("saw", (4,), 5), Output("seen so far", (1,), recorded=False)),
    faults=(Fault("late", 1),),
)


def outbox(journal: Journal) -> tuple[Outbox, Peers, Notes]:
    entropy = SeededEntropy(5, "outbox")
    peers, notes = Peers(seat(0), entropy, Timing()), Notes(journal, entropy)
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
