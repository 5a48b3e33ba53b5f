from __future__ import annotations

import pytest

from p2pdp.core import messages
from p2pdp.core.events import Received, Started, Woken
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import verify_labelled
from p2pdp.ledger import records
from p2pdp.ledger.bodies import is_whole
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, HEAD_LABEL, NOTE, OWN, RECEIVED, SALT_BYTES, SENT, STARTED, WOKEN, head_parts
from p2pdp.peer.effects import Timing
from p2pdp.peer.lifecycle import SKELETON_PIECE_BYTES, close, event_of, expected_to_answer, hand_in, recount
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_message, pack_value, unpack_message
from tests.support.toys import RUN_ID, credentials, identity

SALT = bytes(range(SALT_BYTES))


def stored() -> Journal:
    journal = Journal()
    packed, value = pack_message(Message("m", (4, 5))), pack_value(77)
    journal.append(STARTED, (1.0,))
    journal.append(SENT, (1, packed), value, SALT)
    journal.append(RECEIVED, (2.0, 1, packed, bytes(16)), value, SALT)
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
    before.link(1).voucher = bytes(16)
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
    return RECEIVED, (2.0, sender, pack_message(Message(kind, fields)), bytes(16))


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


SEAT = credentials(0)
ACKNOWLEDGED = [bytes(20), bytes([1] * 20)]


def closed_files(*, stop_between: bool = False) -> dict[str, bytes]:
    journal = Journal()
    journal.append(STARTED, (1.0,))
    journal.append_private(NOTE, (0,), b"x", bytes(16))
    close(journal, SEAT, ACKNOWLEDGED)
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in journal.take_writes():
        if not (stop_between and name == VIEW and records.read(files[PRIVATE] or records.LEDGER_MAGIC).records[1:]):
            files[name] += data
    return files


@pytest.mark.parametrize("role", [VIEW, PRIVATE])
def test_each_ledger_ends_with_a_signature_over_its_role_run_peer_and_head(role: str) -> None:
    *before, last = records.read(closed_files()[role]).records
    assert last.kind == CLOSED
    signature, *said = last.body
    assert said == ([SEAT.voucher_key, ACKNOWLEDGED] if role == VIEW else [b"", []])
    assert is_whole(CLOSED, last.body)
    told = [said[0], *said[1]]
    parts = head_parts(role, RUN_ID, 0, last.index, before[-1].hash, *told)
    assert verify_labelled(identity(0).public, signature, HEAD_LABEL, *parts)
    other = head_parts(PRIVATE if role == VIEW else VIEW, RUN_ID, 0, last.index, before[-1].hash, *told)
    assert not verify_labelled(identity(0).public, signature, HEAD_LABEL, *other)
    assert not verify_labelled(identity(0).public, signature, HEAD_LABEL, *parts, b"more")


def test_a_stop_between_the_two_ends_closes_the_view_only() -> None:
    files = closed_files(stop_between=True)
    journal = Journal(files[VIEW], files[PRIVATE])
    assert journal.private_closed
    assert not journal.closed
    while journal.replaying:
        journal.take_stored()
    close(journal, SEAT, ACKNOWLEDGED)
    assert [name for name, _ in journal.take_writes()] == [VIEW]
    assert journal.closed


@pytest.mark.parametrize("size", [1, SKELETON_PIECE_BYTES, SKELETON_PIECE_BYTES + 1, 3 * SKELETON_PIECE_BYTES - 1])
def test_a_skeleton_goes_before_the_head_in_pieces_that_fit_together(size: int) -> None:
    peers = Peers(SEAT, SeededEntropy(1, "a"), Timing())
    content = bytes(number % 251 for number in range(size))
    hand_in(b"h" * 32, peers, lambda: content, 5.0)
    *pieces, head = [unpack_message(item.message, item.value[16:]) for item in peers.link(CURATOR).in_flight]
    assert (head.type, head.fields, head.value) == ("head", (b"h" * 32,), None)
    assert {piece.type for piece in pieces} == {"skeleton"}
    assert [piece.fields for piece in pieces] == [(at, size) for at in range(0, size, SKELETON_PIECE_BYTES)]
    assert b"".join(piece.value for piece in pieces) == content


def test_without_the_owners_consent_only_the_head_goes_out() -> None:
    peers = Peers(SEAT, SeededEntropy(1, "a"), Timing())
    hand_in(b"h" * 32, peers, None, 5.0)
    assert len(peers.link(CURATOR).in_flight) == len(peers.frames) == 1


def test_what_is_handed_in_is_the_same_each_time() -> None:
    digests = set()
    for seed in range(2):
        peers = Peers(SEAT, SeededEntropy(seed, "a"), Timing())
        hand_in(b"h" * 32, peers, lambda: b"skeleton" * 9000, float(seed))
        digests.add(peers.link(CURATOR).sent_digest)
    assert len(digests) == 1
