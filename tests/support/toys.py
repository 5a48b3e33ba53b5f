"""Hosts with toy machines, their disks, and a network between them that a test moves by hand.

The network may lose, repeat, delay and reorder frames, as the test says; a host may stop at any record it
writes and be made again from what was stored. Draws are numbers that are never given out twice, so a noise
drawn twice shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np

from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.events import Exchanger, Machine, Passer, Watcher
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import COMMON
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.crypto.channel import Channel
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, RosterEntry, sign_entry, sign_roster
from p2pdp.crypto.vouchers import Stamp
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import LEDGER_MAGIC, Record, pack
from p2pdp.peer import payloads
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Effects
from p2pdp.peer.host import Host
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import Payload, parse_payload
from p2pdp.wire.frames import BOXED, decode_frame, encode_frame

RUN_ID, SPEC_DIGEST = bytes([1] * 16), bytes([3] * 32)
NOISE = Mechanism("gaussian", 4.0)
NONCES = SeededEntropy(1, "forged frames")


def identity(peer: Peer) -> Identity:
    return Identity(bytes([100 + peer] * 32))


def run_key(peer: Peer) -> RunKey:
    return RunKey(bytes([200 + peer] * 32))


def roster(
    n: int,
    run_id: bytes = RUN_ID,
    spec_digest: bytes = SPEC_DIGEST,
    protocol: str = "toy",
    spoilt: Mapping[Peer, RosterEntry] = MappingProxyType({}),
) -> Roster:
    """The roster of a toy run, which has `spoilt` entries where bootstrap takes what nobody should."""

    def entry(peer: Peer) -> RosterEntry:
        return spoilt.get(peer) or sign_entry(identity(peer), run_id, run_key(peer).public)

    return sign_roster(
        identity(BOOTSTRAP),
        run_id=run_id,
        spec_digest=spec_digest,
        protocol=protocol,
        facts={"n": n},
        bootstrap=entry(BOOTSTRAP),
        curator=entry(CURATOR),
        entries=[entry(peer) for peer in range(n)],
    )


def credentials(me: Peer, n: int = 2, neighbours: tuple[Peer, ...] | None = None, **signed: Any) -> Credentials:
    return Credentials(me, roster(n, **signed), identity(me), run_key(me), neighbours)


def channel(sender: Peer, receiver: Peer, n: int = 2, **signed: Any) -> Channel:
    """The sender's end, with which a test makes frames that it would never send."""
    return credentials(sender, n, **signed).channel(receiver)


def link_to(peer: Peer) -> Link:
    """A link of somebody who makes frames by hand, and whose vouchers prove nothing."""
    return Link(peer, Stamp(bytes(32), peer))


def forged(sender: Peer, receiver: Peer, payload: bytes, n: int = 2, **signed: Any) -> bytes:
    return encode_frame(BOXED, sender, channel(sender, receiver, n, **signed).seal(payload, NONCES.nonce()))


def opened(sender: Peer, receiver: Peer, frame: bytes, n: int = 2) -> Payload:
    """What a frame says, read with the receiver's key."""
    return parse_payload(credentials(receiver, n).channel(sender).open(decode_frame(frame).body))


def is_data(payload: Payload) -> bool:
    return payload.flags == payloads.DATA


class UniqueDraws:
    """A sampler that never gives the same number twice, whoever asks."""

    name = "unique"
    numbers = count(1000)

    def __init__(self) -> None:
        self.drawn: list[int] = []

    def batch(self, mechanism: Mechanism, shape: Shape, size: int) -> list[Any]:
        values = [next(UniqueDraws.numbers) for _ in range(size)]
        self.drawn += values
        return [np.full(shape, value) for value in values] if shape else values

    def choice(self, options: int) -> int:
        return next(UniqueDraws.numbers) % options


class Quiet:
    """A machine that keeps what it is told and does what it was given to do."""

    def __init__(self, answer: Callable[[Peer, Message, Draws], Step] = lambda *_: NOTHING) -> None:
        self.answer = answer
        self.told: list[Any] = []
        self.finished = False
        self.first = NOTHING
        self.woken = NOTHING

    def start(self, now_s: float, draws: Draws) -> Step:
        self.told.append("start")
        return self.first

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        self.told.append((sender, message.type, message.fields, message.value))
        return self.answer(sender, message, draws)

    def wake(self, now_s: float, draws: Draws) -> Step:
        self.told.append("wake")
        return self.woken

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING


class PingPong:
    """Adds noise to each ball and passes it on round the users; ball k ends after `hops` passes.

    Each user starts `balls` of them. State is what was received and what was sent, values included.
    """

    def __init__(self, me: Peer, n: int, hops: int, balls: int = 1) -> None:
        self.me, self.n, self.hops, self.balls = me, n, hops, balls
        self.took: list[tuple[Peer, int, int, int]] = []
        self.sent: list[tuple[int, int, int]] = []
        self.finished = False

    def start(self, now_s: float, draws: Draws) -> Step:
        return NOTHING.then(*(self._pass_on(self.me * self.balls + ball, 0, 0, draws) for ball in range(self.balls)))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        ball, hop = message.fields
        self.took.append((sender, ball, hop, message.value))
        if sender == self.me:
            return NOTHING
        step = self._pass_on(ball, hop, message.value, draws)
        note = Message("note", (ball, hop), message.value)  # to itself, recorded as own
        return step.then(Step((Send(self.me, note),), outputs=(Output("saw", (ball, hop)),)))

    def _pass_on(self, ball: int, hop: int, value: int, draws: Draws) -> Step:
        if hop >= self.hops:
            return NOTHING
        value = value + draws.noise(NOISE, ()) + draws.choice(3)
        self.sent.append((ball, hop + 1, value))
        to = (self.me + 1) % self.n
        return Step(sends=(Send(to, Message("ball", (ball, hop + 1), value)),))

    def wake(self, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING


def shared_form(message: Message) -> str | None:
    """Check messages that every protocol shares; those that a toy made up may be anything."""
    return None if COMMON.get(message.type) is None else COMMON.problem(message)


class Toys:
    """Some hosts, their disks, and the frames in flight."""

    def __init__(
        self,
        machines: dict[Peer, Callable[[], Any]],
        n: int,
        passer: Callable[[Any], Passer | Exchanger | None] = lambda _machine: None,
        watcher: Callable[[Any], Watcher | None] = lambda _machine: None,
        **options: Any,
    ) -> None:
        self.make = machines
        self.n = n
        self.passer, self.watcher = passer, watcher
        self.options = options
        self.now_s = 0.0
        self.disks = {peer: {VIEW: bytearray(), PRIVATE: bytearray()} for peer in machines}
        self.marks: dict[Peer, list[tuple[int, int]]] = {peer: [] for peer in machines}  # disk sizes after each entry
        self.hosts: dict[Peer, Host] = {}
        self.machines: dict[Peer, Any] = {}
        self.samplers: dict[Peer, UniqueDraws] = {}
        self.wake_at_s: dict[Peer, float | None] = {}
        self.stop_at: dict[Peer, int] = {}  # a host stops once its view holds so many entries
        self.flight: list[tuple[Peer, bytes]] = []
        self.gathers = False  # the fast path is used as a shell does, which leaves writes for later
        self.holds = False  # and frames, which leave with those of other frames that arrive at the same time
        self.held: dict[Peer, list[tuple[Peer, bytes]]] = {}
        self.log: list[tuple[Peer, Effects]] = []
        self.boots = 0

    def boot(self, peer: Peer) -> Effects:
        self.boots += 1
        disk = self.disks[peer]
        journal = Journal(bytes(disk[VIEW]), bytes(disk[PRIVATE]))
        machine: Machine = self.make[peer]()
        self.machines[peer] = machine
        self.samplers[peer] = UniqueDraws()
        neighbours = tuple(other for other in range(self.n) if other != peer)
        self.hosts[peer] = Host(
            credentials(peer, self.n, neighbours),
            machine,
            journal,
            self.samplers[peer],
            SeededEntropy(self.boots, f"host/{peer}"),
            passer=self.passer(machine),
            watcher=self.watcher(machine),
            **{"check": shared_form, **self.options},
        )
        return self.carry(peer, self.hosts[peer].begin(self.now_s))

    def boot_all(self) -> None:
        for peer in self.make:
            self.boot(peer)

    def carry(self, peer: Peer, effects: Effects) -> Effects:
        """What a shell does: writes first, then frames; may stop between two writes."""
        self.log.append((peer, effects))
        disk = self.disks[peer]
        for name, data in effects.writes:
            disk[name] += data
            if name == VIEW and data != LEDGER_MAGIC:
                self.marks[peer].append((len(disk[VIEW]), len(disk[PRIVATE])))
                if len(self.marks[peer]) == self.stop_at.get(peer):
                    del self.stop_at[peer]
                    self.kill(peer)
                    return effects
        if effects.frames:
            self.let_go(peer)  # whose records are among these writes
        self.flight += effects.frames
        self.wake_at_s[peer] = effects.wake_at_s
        return effects

    def kill(self, peer: Peer) -> None:
        del self.hosts[peer]
        self.held.pop(peer, None)
        self.wake_at_s.pop(peer, None)

    def roll_back(self, peer: Peer, kept: int) -> None:
        view, private = self.marks[peer][kept - 1]
        del self.disks[peer][VIEW][view:], self.disks[peer][PRIVATE][private:], self.marks[peer][kept:]

    def records_until(self, peer: Peer, kept: int) -> list[Record]:
        """The records of so many entries of the view."""
        return records.read(bytes(self.disks[peer][VIEW][: self.marks[peer][kept - 1][0]])).records

    def deliver(self, index: int = 0) -> Effects | None:
        receiver, frame = self.flight.pop(index)
        return self.give(receiver, frame)

    def give(self, receiver: Peer, frame: bytes) -> Effects | None:
        for other in [other for other in self.held if other != receiver]:
            self.let_go(other)
        if receiver not in self.hosts:
            return None
        host = self.hosts[receiver]
        if not self.gathers or host.fast_frame is None:
            return self.carry(receiver, host.frame(frame, self.now_s))
        hop = host.fast_frame(frame, self.now_s)
        if hop is None:
            return self.carry(receiver, host.full_frame(frame, self.now_s))
        writes, frames, wake_at_s = hop
        wakes = [at_s for at_s in (wake_at_s, self.wake_at_s[receiver]) if at_s is not None]
        if self.holds:
            self.held[receiver] = [*self.held.get(receiver, ()), *frames]
            frames = ()
        elif frames:
            writes = (*writes, *host.take_writes())
        return self.carry(receiver, Effects(tuple(writes), tuple(frames), min(wakes, default=None)))

    def let_go(self, peer: Peer) -> None:
        """Writes what a host has gathered, then sends what it holds."""
        held = self.held.pop(peer, [])
        if peer in self.hosts and held:
            writes = tuple(self.hosts[peer].take_writes())
            self.carry(peer, Effects(writes, tuple(held), self.wake_at_s[peer]))

    def settle(self) -> None:
        """Delivers all frames in order, until none is left; no time passes."""
        for _ in range(10_000):
            for peer in list(self.held) if not self.flight else ():
                self.let_go(peer)
            if not self.flight:
                return
            self.deliver()
        raise AssertionError("frames without end")

    def next_wake(self) -> None:
        """Lets time pass until the next host wants to be woken, and wakes it."""
        at_s, peer = min((at_s, peer) for peer, at_s in self.wake_at_s.items() if at_s is not None)
        self.now_s = max(self.now_s, at_s)
        self.carry(peer, self.hosts[peer].wake(self.now_s))

    def wake_up(self, peer: Peer, now_s: float) -> Effects:
        self.now_s = now_s
        return self.carry(peer, self.hosts[peer].wake(now_s))

    def run(self, until_s: float) -> None:
        """Delivers and wakes until nothing happens before that time."""
        for _ in range(10_000):
            self.settle()
            due = [at_s for at_s in self.wake_at_s.values() if at_s is not None and at_s <= until_s]
            if not due:
                self.now_s = until_s
                return
            self.next_wake()
        raise AssertionError("wakes without end")

    def records(self, peer: Peer, name: str = VIEW) -> list[Record]:
        contents = records.read(bytes(self.disks[peer][name]))
        assert records.chain_problem(contents) is None
        assert contents.torn_bytes == 0
        return contents.records

    def kinds(self, peer: Peer, name: str = VIEW) -> list[str]:
        return [records.KIND_NAMES[record.kind] for record in self.records(peer, name)]

    def notes(self, peer: Peer) -> list[str]:
        """The faults that a peer recorded."""
        return [
            (record.value or b"")[records.SALT_BYTES :].decode()
            for record in self.records(peer, PRIVATE)
            if record.kind == records.NOTE
        ]

    def faults(self, peer: Peer) -> list[Fault]:
        return [fault for who, effects in self.log if who == peer for fault in effects.faults]


def consistent(toys: Toys) -> None:
    """On each link, the k-th received is the k-th sent: message, value and salt."""
    for peer in toys.make:
        received: dict[Peer, list[tuple[bytes, bytes | None]]] = {}
        for record in toys.records(peer):
            if record.kind == records.RECEIVED:
                received.setdefault(record.body.sender, []).append((record.body.message, record.value))
        for sender, taken in received.items():
            sent = [
                (record.body.message, record.value)
                for record in toys.records(sender)
                if record.kind == records.SENT and record.body.receiver == peer
            ]
            assert taken == sent[: len(taken)]


def used_draws(toys: Toys, peer: Peer) -> list[tuple[int, int]]:
    """Pool and offset of each draw, in order."""
    return [(record.body.pool, record.body.offset) for record in toys.records(peer) if record.kind == records.DRAWN]


def repacked(record: Record) -> bytes:
    """A record but for its times, salts and hashes: what happened, and with which values."""
    body = record.body[1:] if record.kind in records.EVENT_KINDS else record.body
    packed: bytes = pack([record.kind, body, (record.value or b"")[records.SALT_BYTES :]])
    return packed
