from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.auditor.links import link_problems, meeting_problems
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.messages import COMMON, GO, HEAD, TOKEN
from p2pdp.core.step import Message
from p2pdp.ledger.bodies import Met
from p2pdp.ledger.records import LEDGER_MAGIC, MET, RECEIVED, SENT, Chain, Contents, Record, read
from p2pdp.wire.codec import pack_message
from tests.support.gossips import gossip
from tests.support.runs import quiet

NOBODY: AbstractSet[Peer] = frozenset()


def ledger(*entries: tuple[int, Peer, Message, bytes]) -> Contents:
    chain, parts = Chain(), [LEDGER_MAGIC]
    for kind, other, message, value in entries:
        packed = pack_message(message)
        parts.append(chain.append(kind, (other, packed) if kind == SENT else (0.0, other, packed), value))
    return read(b"".join(parts))


FIRST, SECOND = Message(TOKEN, (0, 1)), Message(TOKEN, (0, 2))


def problems(sender: Contents, receiver: Contents, silent: AbstractSet[Peer] = NOBODY) -> list[tuple[Peer, int, str]]:
    return list(link_problems({0: sender, 1: receiver}, silent, NOBODY, COMMON.droppable))


def test_the_same_messages_in_order_are_no_problem() -> None:
    sender = ledger((SENT, 1, FIRST, b"x"), (SENT, 1, SECOND, b"y"))
    receiver = ledger((RECEIVED, 0, FIRST, b"x"), (RECEIVED, 0, SECOND, b"y"))
    assert problems(sender, receiver) == []


@pytest.mark.parametrize(
    "received",
    [
        [(FIRST, b"z"), (SECOND, b"y")],
        [(SECOND, b"y"), (FIRST, b"x")],
        [(Message(TOKEN, (0, 3)), b"x"), (SECOND, b"y")],
    ],
)
def test_other_messages_values_or_orders_are_found(received: list[tuple[Message, bytes]]) -> None:
    sender = ledger((SENT, 1, FIRST, b"x"), (SENT, 1, SECOND, b"y"))
    found = problems(sender, ledger(*((RECEIVED, 0, *one) for one in received)))
    assert found == [(1, 0, "is not what record 0 of its sender sent")]


def test_what_is_missing_at_one_end_is_found_unless_that_end_is_silent() -> None:
    one, none = ledger((SENT, 1, FIRST, b"x")), ledger()
    assert problems(one, none) == [(0, 0, "sends what was never received")]
    assert problems(one, none, {1}) == []
    assert list(link_problems({0: one, 1: none}, NOBODY, {1}, COMMON.droppable)) == []
    got = ledger((RECEIVED, 0, FIRST, b"x"))
    assert problems(none, got) == [(1, 0, "receives what its sender's ledger does not send")]
    assert problems(none, got, {0}) == []


def test_nobody_misses_what_a_closed_peer_would_not_take() -> None:
    assert problems(ledger((SENT, 1, Message(GO), b"")), ledger()) == []


def test_a_head_is_no_message_of_an_open_ledger_and_stands_for_none() -> None:
    head = Message(HEAD, (bytes(32),))
    curator = ledger((RECEIVED, 0, head, b""))
    assert list(link_problems({0: ledger(), CURATOR: curator}, NOBODY, NOBODY, COMMON.droppable)) == []
    sender = ledger((SENT, CURATOR, FIRST, b"x"))
    assert list(link_problems({0: sender, CURATOR: curator}, NOBODY, NOBODY, COMMON.droppable)) == [
        (0, 0, "sends what was never received")
    ]


CHANGING = gossip(5, "erdos_renyi", "rounds = 6", extra="changing = true")


def views() -> dict[int, Contents]:
    return quiet(CHANGING).contents()


def changed(found: dict[int, Contents], user: int, place: int, body: list[Any]) -> Record:
    """Gives the place-th meeting of a user another body."""
    records = found[user].records
    at = [position for position, record in enumerate(records) if record.kind == MET][place]
    record = replace(records[at], body=Met(*body))
    found[user] = replace(found[user], records=[*records[:at], record, *records[at + 1 :]])
    return record


def meetings(found: dict[int, Contents], user: int) -> list[list[Any]]:
    return [record.body for record in found[user].records if record.kind == MET]


def test_an_honest_run_has_none() -> None:
    found = views()
    assert [number for number, _ in meetings(found, 0)] == [1, 2, 3, 4, 5, 6]
    assert list(meeting_problems(found)) == []


def test_a_meeting_that_one_end_hides_is_told_by_the_other() -> None:
    found = views()
    place = next(place for place, (_, peers) in enumerate(meetings(found, 0)) if peers)
    number, peers = meetings(found, 0)[place]
    changed(found, 0, place, [number, peers[1:]])
    ((user, _, what),) = meeting_problems(found)
    assert user == peers[0]
    assert "user 0" in what
    del found[peers[0]]
    assert list(meeting_problems(found)) == [], "without its ledger nobody contradicts"


def test_nobody_meets_itself_or_has_a_round_twice() -> None:
    found = views()
    number, peers = meetings(found, 2)[1]
    record = changed(found, 2, 1, [number, sorted([*peers, 2])])
    assert (2, record.index, "is a meeting that the coins of pairs cannot give") in list(meeting_problems(found))
    found = views()
    record = changed(found, 2, 1, meetings(found, 2)[0])
    assert (2, record.index, "is a meeting that the coins of pairs cannot give") in list(meeting_problems(found))
