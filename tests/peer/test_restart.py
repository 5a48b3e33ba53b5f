from __future__ import annotations

from p2pdp.core import messages
from p2pdp.core.events import Received, Started, Woken
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, OWN, RECEIVED, SALT_BYTES, SENT, STARTED, WOKEN
from p2pdp.peer.effects import Timing
from p2pdp.peer.peers import Peers
from p2pdp.peer.restart import event_of, expected_to_answer, recount
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toys import credentials

SALT = bytes(range(SALT_BYTES))


def stored() -> Journal:
    journal = Journal()
    packed, value = pack_message(Message("m", (4, 5))), pack_value(77)
    journal.append(STARTED, (1.0,))
    journal.append(SENT, (1, packed), value, SALT)
    journal.append(RECEIVED, (2.0, 1, packed), value, SALT)
    journal.append(OWN, (2.5, pack_message(Message("own", (6,)))))
    journal.append(WOKEN, (3.0,))
    journal.append(SENT, (1, packed), value, SALT)
    journal.append(SENT, (2, packed))
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in journal.take_writes():
        files[name] += data
    return Journal(files[VIEW], files[PRIVATE])


def test_counts_and_digests_of_all_links_follow_from_the_view_alone() -> None:
    again, before = (Peers(credentials(0, 3), SeededEntropy(1, "a"), Timing()) for _ in range(2))
    recount(stored(), again)
    part = SALT + pack_value(77)
    before.send(1, pack_message(Message("m", (4, 5))), part, 0.0)
    before.link(1).took(pack_message(Message("m", (4, 5))), part)
    before.send(1, pack_message(Message("m", (4, 5))), part, 0.0)
    before.send(2, pack_message(Message("m", (4, 5))), b"", 0.0)
    for peer in (1, 2):
        assert again.link(peer).hello() == before.link(peer).hello()
        assert list(again.link(peer).in_flight) == list(before.link(peer).in_flight)
    assert again.frames == []


def test_events_come_back_as_they_were() -> None:
    records = {record.kind: record for record in stored().stored()}
    assert event_of(records[STARTED], 0) == (Started(), b"")
    assert event_of(records[WOKEN], 0) == (Woken(), b"")
    assert event_of(records[RECEIVED], 0) == (Received(1, Message("m", (4, 5), 77)), pack_value(77))
    assert event_of(records[OWN], 0) == (Received(0, Message("own", (6,))), b"")


def journal_with(*records: tuple[int, tuple[object, ...]]) -> Journal:
    journal = Journal()
    for kind, body in ((STARTED, (1.0,)), *records):
        journal.append(kind, body)
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in journal.take_writes():
        files[name] += data
    return Journal(files[VIEW], files[PRIVATE])


def received(sender: Peer, kind: str, *fields: object) -> tuple[int, tuple[object, ...]]:
    return RECEIVED, (2.0, sender, pack_message(Message(kind, fields)))


def sent(to: Peer, kind: str, *fields: object) -> tuple[int, tuple[object, ...]]:
    return SENT, (to, pack_message(Message(kind, fields)))


def test_a_restart_waits_for_all_it_may_talk_to() -> None:
    assert expected_to_answer(journal_with(), credentials(0, 3)) == {BOOTSTRAP, CURATOR, 1, 2}
    assert expected_to_answer(journal_with(), credentials(0, 3, (2,))) == {BOOTSTRAP, CURATOR, 2}


def test_a_restart_does_not_wait_for_those_who_are_out() -> None:
    order = (messages.OUT, 2, b"signature")
    assert expected_to_answer(journal_with(received(BOOTSTRAP, *order)), credentials(0, 3)) == {BOOTSTRAP, CURATOR, 1}
    assert expected_to_answer(journal_with(received(BOOTSTRAP, *order)), credentials(2, 3)) == {BOOTSTRAP}
    assert expected_to_answer(journal_with(sent(0, *order)), credentials(BOOTSTRAP, 3)) == {CURATOR, 0, 1}
    assert 2 in expected_to_answer(journal_with(received(1, *order)), credentials(0, 3))  # a user may not say so


def test_a_restart_does_not_wait_for_those_who_have_left() -> None:
    head = received(1, messages.HEAD, b"head")
    assert expected_to_answer(journal_with(head), credentials(CURATOR, 3)) == {BOOTSTRAP, 0, 2}
    assert 1 in expected_to_answer(journal_with(head), credentials(0, 3))
    done = journal_with(received(CURATOR, messages.DONE))
    assert expected_to_answer(done, credentials(BOOTSTRAP, 3)) == {CURATOR}


def test_a_closed_ledger_draws_nothing_and_waits_for_nobody() -> None:
    assert expected_to_answer(journal_with((CLOSED, (b"signature",))), credentials(0, 3)) == set()
