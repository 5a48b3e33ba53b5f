from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from p2pdp.auditor.links import UNDECIDED, decision_problems, link_problems, meeting_problems, pair_problems
from p2pdp.auditor.verify import verify
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import COMMON, GO, HEAD, SKELETON, TOKEN
from p2pdp.core.step import Message
from p2pdp.crypto.pair_coins import noise_salt
from p2pdp.ledger.bodies import Met, ReceivedMessage
from p2pdp.ledger.records import (
    LEDGER_MAGIC,
    MET,
    PAIRED,
    PUBLISHED,
    RECEIVED,
    SENT,
    Chain,
    Contents,
    Record,
    other_end,
    public_message,
    read,
    to_skeleton,
)
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import pack_message
from tests.support.gossips import gossip
from tests.support.runs import Run, Written, quiet, walk

NOBODY: AbstractSet[Peer] = frozenset()


def ledger(*entries: tuple[int, Peer, Message, bytes]) -> Contents:
    chain, parts = Chain(), [LEDGER_MAGIC]
    for kind, other, message, value in entries:
        packed = pack_message(message)
        parts.append(chain.append(kind, (other, packed) if kind == SENT else (0.0, other, packed, bytes(16)), value))
    return read(b"".join(parts))


FIRST, SECOND = Message(TOKEN, (0, 1)), Message(TOKEN, (0, 2))


def problems(
    sender: Contents, receiver: Contents, silent: AbstractSet[Peer] = NOBODY
) -> list[tuple[Peer, int | None, str]]:
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
    assert found == [(1, 0, f"is not what record 0 of its sender sent{UNDECIDED}")]


def test_what_is_missing_at_one_end_is_found_unless_that_end_is_silent() -> None:
    one, none = ledger((SENT, 1, FIRST, b"x")), ledger()
    assert problems(one, none) == [(0, 0, f"sends what was never received{UNDECIDED}")]
    assert problems(one, none, {1}) == []
    assert list(link_problems({0: one, 1: none}, NOBODY, {1}, COMMON.droppable)) == []
    got = ledger((RECEIVED, 0, FIRST, b"x"))
    assert problems(none, got) == [(1, 0, f"receives what its sender's ledger does not send{UNDECIDED}")]
    assert problems(none, got, {0}) == []


def test_nobody_misses_what_a_closed_peer_would_not_take() -> None:
    assert problems(ledger((SENT, 1, Message(GO), b"")), ledger()) == []


def test_a_head_is_no_message_of_an_open_ledger_and_stands_for_none() -> None:
    head = Message(HEAD, (bytes(32),))
    curator = ledger((RECEIVED, 0, head, b""))
    assert list(link_problems({0: ledger(), CURATOR: curator}, NOBODY, NOBODY, COMMON.droppable)) == []
    sender = ledger((SENT, CURATOR, FIRST, b"x"))
    assert list(link_problems({0: sender, CURATOR: curator}, NOBODY, NOBODY, COMMON.droppable)) == [
        (0, 0, f"sends what was never received{UNDECIDED}")
    ]


# Who is wrong, by vouchers

WALK = walk(3, 60)
Change = Callable[[list[Written]], list[Written]]


def places(written: list[Written], kind: int, other: Peer) -> list[int]:
    """Where tokens to or from a user are."""
    found = []
    for at, one in enumerate(written):
        record = one.as_record(at)
        if one.kind == kind and other_end(record) == other and public_message(record).type == TOKEN:
            found.append(at)
    assert len(found) > 3
    return found


def without_one(kind: int, other: Peer, which: int) -> Change:
    def change(written: list[Written]) -> list[Written]:
        at = places(written, kind, other)[which]
        return [*written[:at], *written[at + 1 :]]

    return change


def without_all_from(kind: int, other: Peer, which: int) -> Change:
    def change(written: list[Written]) -> list[Written]:
        gone = places(written, kind, other)[which:]
        return [one for at, one in enumerate(written) if at not in gone]

    return change


def with_another(kind: int, other: Peer, which: int) -> Change:
    def change(written: list[Written]) -> list[Written]:
        at = places(written, kind, other)[which]
        return [*written[:at], replace(written[at], value=bytes(25)), *written[at + 1 :]]

    return change


def with_one_more(kind: int, other: Peer, which: int) -> Change:
    def change(written: list[Written]) -> list[Written]:
        at = places(written, kind, other)[which]
        return [*written[: at + 1], replace(written[at], value=bytes(25)), *written[at + 1 :]]

    return change


@cache
def a_walk() -> Run:
    return quiet(WALK)


def as_skeletons(evidence: Evidence) -> Evidence:
    views = {peer: to_skeleton(data) for peer, data in evidence.views.items()}
    return replace(evidence, views=views, private={})


def judgement(evidence: Evidence) -> list[tuple[Peer, bool]]:
    """At whom problems are, and whether somebody is convicted; the same of skeletons."""
    found = [(problem.peer, not problem.what.endswith(UNDECIDED)) for problem in verify(evidence).problems]
    skeletons = verify(as_skeletons(evidence)).problems
    assert [(problem.peer, not problem.what.endswith(UNDECIDED)) for problem in skeletons] == found
    return found


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("other", [0, 2])
@pytest.mark.parametrize("change", [without_one, with_another])
def test_who_hides_or_changes_what_it_sent_is_convicted_by_its_own_voucher(
    change: Callable[..., Change], other: Peer, which: int
) -> None:
    found = judgement(a_walk().forged(1, change(SENT, other, which)))
    assert (1, True) in found
    assert {peer for peer, convicted in found if convicted} == {1}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("other", [0, 2])
def test_who_denies_what_it_acknowledged_is_convicted(other: Peer, which: int) -> None:
    found = judgement(a_walk().forged(1, without_all_from(RECEIVED, other, which)))
    assert (1, True) in found
    assert {peer for peer, convicted in found if convicted} == {1}


@pytest.mark.parametrize(
    ("kind", "change"), [(RECEIVED, with_one_more), (RECEIVED, with_another), (SENT, with_one_more)]
)
def test_what_no_voucher_proves_convicts_nobody(kind: int, change: Callable[..., Change]) -> None:
    """Somebody who makes a message up has no voucher for it, and an honest peer is not blamed for having sent none."""
    found = judgement(a_walk().forged(1, change(kind, 2, 1)))
    assert found
    assert not any(convicted for peer, convicted in found if peer != 1)
    assert any(not convicted for _, convicted in found)


def test_a_false_key_convicts_nobody() -> None:
    def change(written: list[Written]) -> list[Written]:
        signature, _, told = written[-1].body
        hidden = without_one(SENT, 2, 1)(written)
        return [*hidden[:-1], replace(written[-1], body=(signature, bytes(32), told))]

    found = judgement(a_walk().forged(1, change))
    assert any(not convicted for _, convicted in found)
    assert not any(convicted for peer, convicted in found if peer != 1)  # whose own ledger does not replay


def test_the_roles_are_not_believed_against_whose_key_they_could_read() -> None:
    """The key of a user's vouchers is in the skeleton that it hands in, while the roles still write."""
    views = a_walk().contents()
    at = next(at for at, one in enumerate(views[0].records) if one.kind == SENT and one.body.receiver == BOOTSTRAP)
    records = [*views[0].records[:at], *views[0].records[at + 1 :]]
    views[0] = replace(views[0], records=records)

    def convicted(*, sealed: bool) -> set[Peer]:
        found = link_problems(views, NOBODY, NOBODY, COMMON.droppable, sealed=sealed)
        return {peer for peer, _, what in found if not what.endswith(UNDECIDED)}

    assert convicted(sealed=False) == {0}, "it handed in none"
    curator = views[CURATOR].records
    piece = replace(
        next(record for record in curator if record.kind == RECEIVED and record.body.sender == 0),
        body=ReceivedMessage(0.0, 0, pack_message(Message(SKELETON, (0, 1))), bytes(16)),
    )
    views[CURATOR] = replace(views[CURATOR], records=[*curator[:-1], piece, curator[-1]])
    assert convicted(sealed=False) == set()
    assert convicted(sealed=True) == {0}


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


def paired(peer: int, number: int, key: bytes, scale: float = 1.0) -> bytes:
    return Chain().append(PAIRED, (peer, number, "gaussian", scale, 0, []), noise_salt(key) + key)


def pair_views(*entries: tuple[int, bytes]) -> dict[int, Contents]:
    """Give users ledgers that consist of these entries, of which only one a user is a whole chain."""
    found: dict[int, Contents] = {}
    for user, data in entries:
        contents = read(LEDGER_MAGIC + data)
        known = found[user].records if user in found else []
        found[user] = replace(contents, records=[*known, *contents.records])
    return found


KEY, OTHER_KEY = bytes(32), bytes([1] * 32)


def test_a_draw_that_both_recorded_alike_is_no_problem() -> None:
    found = pair_views((0, paired(2, 0, KEY)), (2, paired(0, 0, KEY)), (0, paired(1, 0, OTHER_KEY)))
    assert list(pair_problems(found, set())) == [], "user 1 has no ledger here"


def test_a_draw_of_another_key_or_scale_and_one_that_only_one_has_are_problems() -> None:
    for other in (paired(0, 0, OTHER_KEY), paired(0, 0, KEY, 2.0), paired(0, 1, KEY), b""):
        found = pair_views((0, paired(2, 0, KEY)), (2, other))
        assert {user for user, _, _ in pair_problems(found, set())} >= {0}
    assert list(pair_problems(pair_views((0, paired(2, 0, KEY)), (2, b"")), {2})) == []


def test_a_draw_with_a_peer_is_used_once() -> None:
    found = pair_views((0, paired(2, 0, KEY)), (0, paired(2, 0, KEY)), (2, paired(0, 0, KEY)), (1, paired(1, 0, KEY)))
    assert {user for user, _, _ in pair_problems(found, set())} == {0, 1}


def decision(*absent: Peer, signature: bytes = bytes(64)) -> Message:
    return Message(SURVIVORS, (list(absent), signature))


def decided(views: dict[Peer, Contents], signed: bool = True) -> list[tuple[Peer, int]]:
    return [(peer, index) for peer, index, _ in decision_problems(views, lambda _: signed)]


def test_one_decision_for_everybody_is_no_problem() -> None:
    told = ledger((SENT, CURATOR, decision(1), b""), (SENT, 0, decision(1), b""))
    heard = ledger((RECEIVED, BOOTSTRAP, decision(1), b""))
    assert decided({0: heard, CURATOR: heard, BOOTSTRAP: told}) == []
    assert decided({0: heard}) == []
    assert decided({0: ledger(), 1: ledger()}, signed=False) == []


def test_a_decision_that_is_not_signed_is_found_once() -> None:
    heard = ledger((RECEIVED, BOOTSTRAP, decision(1), b""))
    assert decided({0: heard, 1: heard}, signed=False) == [(0, 0)]


def test_another_decision_is_found_wherever_it_is() -> None:
    one, other = (ledger((RECEIVED, BOOTSTRAP, decision(peer), b"")) for peer in (1, 2))
    assert decided({0: one, 3: other}) == [(3, 0)]
    twice = ledger((SENT, CURATOR, decision(1), b""), (SENT, 0, decision(2), b""))
    assert decided({BOOTSTRAP: twice, 0: other}) == [(BOOTSTRAP, 1), (0, 0)]


def test_what_others_say_of_a_decision_is_none() -> None:
    forged, told = (RECEIVED, 2, decision(3), b""), (RECEIVED, BOOTSTRAP, decision(1), b"")
    assert decided({0: ledger(forged, told, forged), CURATOR: ledger(told, forged)}) == []
    assert decided({0: ledger(forged)}, signed=False) == []


def test_a_decision_is_published_once() -> None:
    chain, packed = Chain(), pack_message(decision(1))
    twice = read(b"".join([LEDGER_MAGIC, *(chain.append(PUBLISHED, (packed,), b"") for _ in range(2))]))
    assert decided({BOOTSTRAP: twice}) == [(BOOTSTRAP, 1)]
