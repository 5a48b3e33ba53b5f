from __future__ import annotations

from dataclasses import replace
from typing import Any

from p2pdp.audit.meetings import meeting_problems
from p2pdp.ledger.bodies import Met
from p2pdp.ledger.records import MET, Contents, Record
from tests.support.gossips import gossip
from tests.support.runs import quiet

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
