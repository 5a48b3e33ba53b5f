from __future__ import annotations

from p2pdp.core.events import Received, Started, Woken
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.host.custody import Guardian
from p2pdp.host.effects import Timing
from p2pdp.host.peers import Peers
from p2pdp.host.restart import event_of, recount
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import OWN, RECEIVED, SALT_BYTES, SENT, STARTED, WOKEN
from p2pdp.wire.codec import pack_message, pack_value
from tests.host.toys import seat

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
    again, before = (Peers(seat(0, 3), SeededEntropy(1, "a"), Timing(), Guardian()) for _ in range(2))
    recount(stored(), again)
    part = SALT + pack_value(77)
    before.send(1, pack_message(Message("m", (4, 5))), part, 0.0)
    before.link(1).took(pack_message(Message("m", (4, 5))), part)
    before.send(1, pack_message(Message("m", (4, 5))), part, 0.0)
    before.send(2, pack_message(Message("m", (4, 5))), b"", 0.0)
    for peer in (1, 2):
        assert again.link(peer).hello(wants_answer=True) == before.link(peer).hello(wants_answer=True)
        assert list(again.link(peer).waiting) == list(before.link(peer).waiting)
    assert again.frames == []


def test_events_come_back_as_they_were() -> None:
    records = {record.kind: record for record in stored().stored()}
    assert event_of(records[STARTED], 0) == (Started(), b"")
    assert event_of(records[WOKEN], 0) == (Woken(), b"")
    assert event_of(records[RECEIVED], 0) == (Received(1, Message("m", (4, 5), 77)), pack_value(77))
    assert event_of(records[OWN], 0) == (Received(0, Message("own", (6,))), b"")
