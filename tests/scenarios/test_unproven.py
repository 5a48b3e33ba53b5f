"""What others say that a peer forgot: without its own voucher nothing stops it, and with it nothing keeps it going."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.endings import COMPLAINT
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.vouchers import NO_VOUCHER, VOUCHER_BYTES
from p2pdp.ledger import records
from p2pdp.ledger.records import RECEIVED, public_message, read
from p2pdp.peer.effects import Timing
from p2pdp.peer.link import Hello
from p2pdp.peer.payloads import CONTROL, DATA, DATA_HEAD, HEAD, VOUCHER_AT, VOUCHER_END
from p2pdp.peer.peers import Peers
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack, pack_message
from tests.support.crash_specs import COMPLETE, RING
from tests.support.fault_worlds import ends, world_of
from tests.support.run_oracle import judge
from tests.support.toys import PingPong, Toys, credentials, forged, opened

LIAR, HONEST = 1, 2
N = 3
TIMING = Timing(rejoin_s=5.0, resend_s=2.0)


class Victim:
    """A peer with some history: what it told the liar, and what it told others, here and in another run."""

    def __init__(self, me: Peer) -> None:
        self.me = me
        self.peers = Peers(credentials(me, N), SeededEntropy(me + 9, "victim"), TIMING)
        elsewhere = Peers(credentials(me, N, run_id=bytes([7] * 16)), SeededEntropy(me + 9, "elsewhere"), TIMING)
        self.now_s = 1.0
        for number in range(6):
            message = pack_message(Message("m", (number,)))
            for peers in (self.peers, elsewhere):
                for to in (LIAR, HONEST):
                    peers.send(to, message, b"", self.now_s)
            self.say(LIAR, DATA_HEAD.pack(DATA, number + 1, number, bytes(16), len(message)) + message)
        self.vouchers = [NO_VOUCHER, bytes(range(VOUCHER_BYTES))]
        for peers in (self.peers, elsewhere):
            for to in (LIAR, HONEST):
                link = peers.link(to)
                peers.frame(to, link.control(0))
                self.vouchers += [link.data(item)[VOUCHER_AT:VOUCHER_END] for item in link.in_flight]
                self.vouchers.append(link.control(0)[VOUCHER_AT:VOUCHER_END])
        self.digests = [link.sent_digest for link in self.peers.links.values()] + [bytes(16)]
        self.digests += [item.digest for item in self.peers.link(LIAR).in_flight]
        self.peers.frames.clear()

    def say(self, sender: Peer, payload: bytes) -> None:
        link = self.peers.open(forged(sender, self.me, payload, N))
        arrival = None if link is None else self.peers.read(link, self.now_s)
        if arrival is not None:
            self.peers.took(arrival, self.now_s)


NUMBERS = st.one_of(st.integers(0, 12), st.sampled_from([2**16, 2**31, 2**32 - 1]))


@st.composite
def lies(draw: Any) -> tuple[Any, ...]:
    which = st.integers(0, 10**3)
    return (
        draw(st.sampled_from(["acknowledgement", "message", "hello", "time"])),
        *(draw(NUMBERS) for _ in range(3)),
        *(draw(which) for _ in range(6)),
    )


def lie(victim: Victim, told: tuple[Any, ...]) -> None:
    how, one, two, three, *which = told
    voucher, other, digest, more, question, length = which
    vouchers, digests = victim.vouchers, victim.digests
    tag = vouchers[voucher % len(vouchers)][8:]
    if how == "acknowledgement":
        victim.say(LIAR, HEAD.pack(CONTROL, 0, one, tag) + pack([]))
    elif how == "message":
        message = pack_message(Message("m", (length,)))
        victim.say(LIAR, DATA_HEAD.pack(DATA, max(1, two), one, tag, len(message)) + message)
    elif how == "hello":
        asked = victim.peers.link(LIAR).asked
        answer = asked.question if asked is not None and question % 2 else b""
        said = Hello(
            one, digests[digest % len(digests)], two, digests[more % len(digests)], three,
            bytes(question % 3), answer, vouchers[voucher % len(vouchers)], vouchers[other % len(vouchers)],
        )  # fmt: skip
        victim.say(LIAR, HEAD.pack(CONTROL, 0, length % 14, tag) + pack(said.packed()))
    else:
        victim.now_s += 1.0 + length % 7
        victim.peers.tick(victim.now_s)


@given(st.sampled_from([0, BOOTSTRAP, CURATOR]), st.lists(lies(), max_size=12))
def test_whatever_a_peer_says_it_stops_nobody(me: Peer, told: list[tuple[Any, ...]]) -> None:
    victim = Victim(me)
    for one in told:
        lie(victim, one)
    peers = victim.peers
    assert not peers.rolled_back
    assert {fault.peer for fault in peers.faults} <= {LIAR}, "nobody else is named"
    peers.frames.clear()
    peers.send(HONEST, b"onward", b"", victim.now_s)
    victim.say(HONEST, HEAD.pack(CONTROL, 0, 7, bytes(16)) + pack([]))
    assert [to for to, _ in peers.frames] == [HONEST]
    assert not peers.link(HONEST).in_flight, "with others all goes on"


def test_the_same_hello_with_the_victims_own_voucher_stops_it() -> None:
    """The search above would find one if links believed what they must not."""
    victim = Victim(0)
    link = victim.peers.link(LIAR)
    proved = Hello(6, link.sent_digest, 6, bytes(16), 6, voucher=link.data(link.in_flight[-1])[VOUCHER_AT:VOUCHER_END])
    forgetful = Victim(0)
    del forgetful.peers.links[LIAR]
    forgetful.say(LIAR, HEAD.pack(CONTROL, 0, 0, bytes(16)) + pack(proved.packed()))
    assert forgetful.peers.rolled_back


def test_who_claims_without_proof_is_asked_once_and_gets_no_message_meanwhile() -> None:
    victim = Victim(0)
    peers, bomb = victim.peers, HEAD.pack(CONTROL, 0, 99, bytes(16)) + pack([])
    for _ in range(3):
        victim.say(LIAR, bomb)
    assert [(fault.kind, fault.peer) for fault in peers.faults] == [("unproven_rollback", LIAR)] * 3
    assert [bool(opened(0, LIAR, frame, N).hello) for _, frame in peers.frames] == [True]
    peers.frames.clear()
    peers.send(LIAR, b"message", b"", victim.now_s)
    assert peers.frames == []
    peers.send_again(peers.link(LIAR), victim.now_s + 4.9)
    assert [bool(opened(0, LIAR, frame, N).hello) for _, frame in peers.frames] == [True]
    peers.frames.clear()
    peers.send_again(peers.link(LIAR), victim.now_s + 5.0)
    assert {opened(0, LIAR, frame, N).flags for _, frame in peers.frames} == {DATA}
    peers.frames.clear()
    victim.say(LIAR, bomb)
    assert peers.frames == [], "it is not asked again"
    peers.send(LIAR, b"message", b"", victim.now_s + 6.0)
    assert len(peers.frames) == 1


def test_what_was_held_back_meanwhile_goes_out_before_what_comes_after_it() -> None:
    victim = Victim(0)
    peers, before = victim.peers, victim.peers.link(LIAR).sent
    victim.say(LIAR, HEAD.pack(CONTROL, 0, 99, bytes(16)) + pack([]))
    peers.send(LIAR, b"held back", b"", victim.now_s)
    peers.frames.clear()
    peers.send(LIAR, b"later", b"", victim.now_s + 6.0)
    numbers = [opened(0, LIAR, frame, N).number for _, frame in peers.frames]
    assert numbers[-2:] == [before + 1, before + 2]


# What really was forgotten


def finished(hops: int = 8) -> Toys:
    toys = Toys({peer: lambda peer=peer: PingPong(peer, 2, hops) for peer in range(2)}, 2)  # type: ignore[misc]
    toys.boot_all()
    toys.run(60.0)
    return toys


@pytest.mark.parametrize("peer", [0, 1])
def test_a_rollback_at_every_record_is_found_when_its_peer_restarted_too(peer: int) -> None:
    whole, found = finished(), 0
    for kept in range(1, len(whole.marks[peer])):
        lost = whole.records(peer)[len(whole.records_until(peer, kept)) :]
        if not any(record.kind == records.SENT for record in lost):
            continue
        toys, other = finished(), 1 - peer
        for one in (peer, other):
            toys.kill(one)
        toys.roll_back(peer, kept)
        toys.boot(other)
        toys.boot(peer)
        toys.run(300.0)
        assert toys.hosts[peer].stopped
        assert toys.samplers[peer].drawn == []
        assert not toys.hosts[other].stopped
        found += 1
    assert found >= 4


def test_a_copy_of_a_live_folder_is_found() -> None:
    """A second process begins from a copy of the disk of user 0, and draws its own noise."""
    toys = Toys({peer: lambda peer=peer: PingPong(peer, 2, 9) for peer in range(2)}, 2)  # type: ignore[misc]
    toys.boot_all()
    for _ in range(3):
        toys.deliver()
    copied = {name: bytes(data) for name, data in toys.disks[0].items()}
    original = toys.hosts[0]
    toys.settle()
    sent = [record.kind for record in toys.records(0)].count(records.SENT)
    toys.kill(0)
    for name, data in copied.items():
        toys.disks[0][name][:] = data
    toys.marks[0].clear()
    toys.boot(0)
    toys.run(200.0)
    assert sent > 2
    assert toys.hosts[0].stopped
    assert toys.samplers[0].drawn == []
    assert not original.stopped


# In whole runs


def bombing(monkeypatch: pytest.MonkeyPatch, *liars: Peer) -> list[Peer]:
    """Have these users tell all others that they have more messages of them than were ever sent."""
    tick, bombs = Peers.tick, list[Peer]()

    def bomb(self: Peers, now_s: float) -> None:
        tick(self, now_s)
        if self._credentials.me in liars:
            for victim in self._credentials.peers():
                self.frame(victim, HEAD.pack(CONTROL, 0, 10**6, bytes(16)) + pack([]))
                bombs.append(victim)

    monkeypatch.setattr(Peers, "tick", bomb)
    return bombs


@pytest.mark.parametrize("liars", [(1,), (1, 2)])
def test_bombs_do_not_keep_a_run_from_its_result(monkeypatch: pytest.MonkeyPatch, liars: tuple[Peer, ...]) -> None:
    bombs = bombing(monkeypatch, *liars)
    world = world_of(COMPLETE, 3)
    world.run_to_end()
    assert {0, BOOTSTRAP, CURATOR} <= set(bombs)
    assert world.out == []
    hosts = [process.host for process in world.processes.values() if process.host is not None]
    assert not any(host.stopped for host in hosts)
    assert any("unproven_rollback" in host.fault_counts for host in hosts)
    told = [
        (record.body.sender, *public_message(record).fields)
        for record in read(bytes(world.processes[BOOTSTRAP].disk.view)).records
        if record.kind == RECEIVED and public_message(record).type == COMPLAINT
    ]
    assert told
    assert len(told) == len(set(told)), "once by each"
    assert {about for _, about, _ in told} <= set(liars)
    assert world.stopped is None
    assert judge(world, {}).verification.verified == "complete"


def test_liars_do_not_hide_that_somebody_really_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    bombing(monkeypatch, 0, 2)
    assert ends(world_of(RING, 1, Crash(1, at_record=13, rolled_back_to=4)), "the disk of 1 was rolled back")
