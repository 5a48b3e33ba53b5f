from __future__ import annotations

from p2pdp.core.step import Custody, Fault
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.host import link as links
from p2pdp.host.control import heed_control
from p2pdp.host.custody import Guardian
from p2pdp.host.effects import Timing
from p2pdp.host.link import Hello, Payload
from p2pdp.host.peers import Peers
from tests.host.toys import opened, seat


def peers_of(me: int) -> Peers:
    return Peers(seat(me, 3), SeededEntropy(me, "control"), Timing(), Guardian())


def said(peers: Peers) -> list[Payload]:
    """What was sent to user 1."""
    frames = [frame for _, frame in peers.frames]
    peers.frames.clear()
    return [opened(0, 1, frame, 3) for frame in frames]


def control(flags: int, hello: Hello | None = None) -> Payload:
    return Payload(links.CONTROL | flags, 0, 0, b"", b"", [], hello.packed() if hello else [])


def test_what_is_not_acknowledged_is_sent_again_on_request() -> None:
    peers = peers_of(0)
    for number in range(3):
        peers.send(1, b"message", bytes([number]), 1.0)
    first = said(peers)
    heed_control(peers, peers.link(1), control(links.RESEND), 2.0)
    assert said(peers) == first


def test_a_poke_is_answered_with_all_that_has_settled() -> None:
    peers = peers_of(0)
    peers.guardian.received(Custody(4, 2), 1)
    peers.guardian.passed(Custody(4, 3), 2, 1, 1.0)
    peers.guardian.acknowledged(2, 1)
    for _ in range(2):
        heed_control(peers, peers.link(1), control(links.POKE), 2.0)
        assert [payload.settled for payload in said(peers)] == [[[4, 2]]]
    assert peers.link(1).settled == {}


def test_a_hello_that_is_none_is_a_fault_and_changes_nothing() -> None:
    peers = peers_of(0)
    heed_control(peers, peers.link(1), Payload(links.CONTROL, 0, 0, b"", b"", [], ["received"]), 2.0)
    assert (peers.faults, peers.frames) == ([Fault("malformed", 1)], [])


def test_who_seems_to_have_forgotten_is_asked_once_more_before_it_is_a_fault() -> None:
    peers, theirs = peers_of(0), peers_of(1)
    peers.send(1, b"message", b"", 1.0)
    peers.link(1).acknowledge_up_to(1)
    said(peers)
    empty = theirs.link(0).hello(wants_answer=False)
    heed_control(peers, peers.link(1), control(0, empty), 2.0)
    (question,) = said(peers)
    assert Hello.unpacked(question.hello).wants_answer
    assert peers.faults == []
    heed_control(peers, peers.link(1), control(0, empty), 3.0)
    assert peers.faults == [Fault("peer_rolled_back", 1)]
    assert said(peers) == []
    assert not peers.rolled_back


def test_who_is_shown_to_have_forgotten_says_so_and_stops() -> None:
    peers = peers_of(0)
    ahead = Hello(5, bytes(16), 0, bytes(16), 0, wants_answer=False)
    heed_control(peers, peers.link(1), control(0, ahead), 2.0)
    assert peers.rolled_back
    assert [bool(payload.hello) for payload in said(peers)] == [True]
