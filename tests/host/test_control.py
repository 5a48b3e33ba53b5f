from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import Fault
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.host import payloads
from p2pdp.host.control import heed_unusual
from p2pdp.host.effects import Timing
from p2pdp.host.link import Hello
from p2pdp.host.payloads import Payload
from p2pdp.host.peers import Peers
from tests.support.toys import PingPong, Toys, consistent, opened, seat


def peers_of(me: int) -> Peers:
    return Peers(seat(me, 3), SeededEntropy(me, "control"), Timing())


def said(peers: Peers) -> list[Payload]:
    """What was sent to user 1."""
    frames = [frame for _, frame in peers.frames]
    peers.frames.clear()
    return [opened(0, 1, frame, 3) for frame in frames]


def control(flags: int, hello: Hello | None = None) -> Payload:
    return Payload(payloads.CONTROL | flags, 0, 0, b"", b"", hello.packed() if hello else [])


def test_what_is_not_acknowledged_is_sent_again_on_request() -> None:
    peers = peers_of(0)
    for number in range(3):
        peers.send(1, b"message", bytes([number]), 1.0)
    first = said(peers)
    heed_unusual(peers, peers.link(1), control(payloads.RESEND), 2.0)
    assert said(peers) == first


def test_a_poke_is_answered_with_what_came_of_the_peer_and_nothing_else() -> None:
    peers = peers_of(0)
    peers.link(1).received = 4
    peers.link(2).received = 9
    peers.send(2, b"message", b"", 1.0)
    peers.frames.clear()
    heed_unusual(peers, peers.link(1), control(payloads.POKE), 2.0)
    assert said(peers) == [Payload(payloads.CONTROL, 0, 4, b"", b"", [])]


def test_a_hello_that_is_none_is_a_fault_and_changes_nothing() -> None:
    peers = peers_of(0)
    heed_unusual(peers, peers.link(1), Payload(payloads.CONTROL, 0, 0, b"", b"", ["received"]), 2.0)
    assert (peers.faults, peers.frames) == ([Fault("malformed", 1)], [])


def test_who_seems_to_have_forgotten_is_asked_and_only_its_answer_is_believed() -> None:
    peers, theirs = peers_of(0), peers_of(1)
    peers.send(1, b"message", b"", 1.0)
    peers.link(1).acknowledge_up_to(1)
    said(peers)
    empty = theirs.link(0).hello()
    heed_unusual(peers, peers.link(1), control(0, empty), 2.0)
    (question,) = said(peers)
    asked = Hello.unpacked(question.hello).question
    assert asked
    for _ in range(3):  # however often it comes, and whatever it answers
        heed_unusual(peers, peers.link(1), control(0, empty), 3.0)
        heed_unusual(peers, peers.link(1), control(0, theirs.link(0).hello(answer=b"another")), 3.0)
    assert (peers.faults, said(peers)) == ([], [])
    heed_unusual(peers, peers.link(1), control(0, theirs.link(0).hello(answer=asked)), 4.0)
    assert peers.faults == [Fault("peer_rolled_back", 1)]
    assert said(peers) == []
    assert not peers.rolled_back
    heed_unusual(peers, peers.link(1), control(0, theirs.link(0).hello(answer=asked)), 5.0)
    assert peers.faults == [Fault("peer_rolled_back", 1)], "an answer counts once"


@given(st.lists(st.integers(0, 10**4), max_size=80))
def test_old_frames_that_come_again_or_late_accuse_nobody(chances: list[int]) -> None:
    """Whatever the network repeats, loses, keeps back and cuts, while hosts that lose nothing stop and come back."""
    toys = Toys({peer: lambda peer=peer: PingPong(peer, 3, 5) for peer in range(3)}, 3)  # type: ignore[misc]
    toys.boot_all()
    for chance in chances:
        what, which = chance % 8, chance // 8
        sent = [frame for _, effects in toys.log for frame in effects.frames]
        if what < 2 and toys.flight:
            toys.deliver(0 if what else which % len(toys.flight))
        elif what == 2 and toys.flight:
            toys.flight.pop(which % len(toys.flight))
        elif what in (3, 4) and sent:
            toys.give(*sent[which % len(sent)])
        elif what == 5:
            toys.carry(which % 3, toys.hosts[which % 3].connected((which % 3 + 1 + which // 3 % 2) % 3, toys.now_s))
        elif what == 6 and any(at_s is not None for at_s in toys.wake_at_s.values()):
            toys.next_wake()
        elif what == 7 and which % 3 == 0:
            toys.kill(which // 3 % 3)
            toys.boot(which // 3 % 3)
    sent = [frame for _, effects in toys.log for frame in effects.frames]
    for receiver, frame in sent:  # and in the end everything once more
        toys.give(receiver, frame)
    toys.run(toys.now_s + 90.0)
    for peer in range(3):
        assert not {"rolled_back", "peer_rolled_back", "conflict"} & {fault.kind for fault in toys.faults(peer)}
        assert len(toys.machines[peer].took) == 10
    consistent(toys)


def test_a_restart_waits_for_answers_and_not_for_old_words() -> None:
    peers = peers_of(0)
    peers.silent, peers.expected_hellos = True, {1}
    peers.ask(1)
    asked = Hello.unpacked(said(peers)[0].hello).question
    theirs = peers_of(1).link(0)
    for old in (theirs.hello(), theirs.hello(b"question"), theirs.hello(b"question", b"another")):
        heed_unusual(peers, peers.link(1), control(0, old), 2.0)
        assert (peers.expected_hellos, peers.fresh) == ({1}, False)
    assert {Hello.unpacked(payload.hello).question for payload in said(peers)} == {asked}, "it is asked once"
    heed_unusual(peers, peers.link(1), control(0, theirs.hello(answer=asked)), 2.0)
    assert (peers.expected_hellos, peers.fresh) == (set(), True)


def test_who_is_shown_to_have_forgotten_says_so_and_stops() -> None:
    peers = peers_of(0)
    ahead = Hello(5, bytes(16), 0, bytes(16), 0)
    heed_unusual(peers, peers.link(1), control(0, ahead), 2.0)
    assert peers.rolled_back
    assert [bool(payload.hello) for payload in said(peers)] == [True]
