"""Users of one run to whom things happen, with the fast path or without it, for `tests/scenarios/test_fast_path_*`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar
from unittest.mock import patch

from p2pdp.core import messages
from p2pdp.core.events import Exchanger, Passer
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import MessageTable
from p2pdp.core.step import Message
from p2pdp.ledger.records import SALT_BYTES, Record
from p2pdp.peer.acknowledgements import PacketSpace
from p2pdp.peer.fast_exchange import FastExchange
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import CONTROL, DATA, DATA_HEAD, HEAD, POKE, RESEND
from p2pdp.peer.pieces import Parts
from p2pdp.protocols.participant import Participant
from p2pdp.wire.codec import pack, pack_message, pack_value
from tests.support.toys import Toys, UniqueDraws, forged, used_draws

ACTS = (
    *("deliver",) * 12, "any", "twice", "lose", "idle", "tick", "wake", "connected", "kill", "boot", "out",
    "order", "told", "result", "control", "odd frame",
)  # fmt: skip


@contextmanager
def watched_takes() -> Iterator[list[bool]]:
    """Give a list of whether each frame took the fast exchange."""
    taken: list[bool] = []
    take = FastExchange.take

    def watched(self: FastExchange, *arguments: Any) -> Any:
        found = take(self, *arguments)
        taken.append(found is not None)
        return found

    with patch.object(FastExchange, "take", watched):
        yield taken


@dataclass
class Lives:
    """Users of one run, to whom things happen."""

    plan: Any
    fast: bool = True
    gathers: bool = False

    table: ClassVar[MessageTable]
    slots: ClassVar[tuple[str, ...]]  # of the machine: what the two ways must agree on

    def __post_init__(self) -> None:
        n = self.plan.n
        UniqueDraws.numbers = count(1000)
        make: dict[Peer, Any] = {peer: partial(self._participant, peer) for peer in range(n)}
        self.toys = Toys(make, n, self._passer_of, check=self._problem)
        self.toys.gathers = self.gathers
        self.toys.boot_all()
        for peer in range(n):
            self.say(peer, BOOTSTRAP, Message(messages.GO))

    def machine(self, peer: Peer, others: tuple[Peer, ...]) -> Any:
        raise NotImplementedError

    def passer(self, participant: Any) -> Passer | Exchanger:
        raise NotImplementedError

    def wrong(self, message: Message) -> str | None:
        raise NotImplementedError

    def odd(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        """Have something else happen that only this protocol has."""

    def _participant(self, peer: Peer) -> Participant:
        others = tuple(other for other in range(self.plan.n) if other != peer)
        return Participant(peer, self.machine(peer, others), self.table)

    def _passer_of(self, participant: Any) -> Passer | Exchanger | None:
        return self.passer(participant) if self.fast else None

    def _problem(self, message: Message) -> str | None:
        return self.table.problem(message) or self.wrong(message)

    def inner(self, peer: Peer) -> Any:
        return self.toys.hosts[peer]._machine._machine  # type: ignore[attr-defined]

    def say(self, to: Peer, sender: Peer, message: Message) -> None:
        value = pack_value(message.value)
        self.give(to, sender, pack_message(message), bytes(SALT_BYTES) + value if value else b"")

    def give(self, to: Peer, sender: Peer, message: bytes, part: bytes) -> None:
        if to in self.toys.hosts:
            link = self.toys.hosts[to]._peers.link(sender)
            head = DATA_HEAD.pack(DATA, link.received + 1, link.sent, bytes(16), len(message))
            self._frame(to, sender, head + message + part)

    def _frame(self, to: Peer, sender: Peer, payload: bytes) -> None:
        self.toys.give(to, forged(sender, to, payload, self.plan.n))

    def happens(self, act: str, which: int) -> None:
        toys, n = self.toys, self.plan.n
        peer, other = which % n, (which // n % (n - 1) + which + 1) % n
        toys.now_s += (0.0, 0.0, 0.001, 0.4)[which % 4]
        if act in ("deliver", "any", "twice", "lose"):
            at = which % len(toys.flight) if toys.flight and act != "deliver" else 0
            if toys.flight:
                {"twice": lambda: toys.give(*toys.flight[at]), "lose": lambda: toys.flight.pop(at)}.get(
                    act, lambda: toys.deliver(at)
                )()
        elif act == "tick":
            if any(at_s is not None for at_s in toys.wake_at_s.values()):
                toys.next_wake()
        elif act == "boot":
            for gone in set(range(n)) - set(toys.hosts):
                toys.boot(gone)
        elif peer in toys.hosts and peer != other:
            self._to_host(act, which, peer, other)

    def _to_host(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        toys, host = self.toys, self.toys.hosts[peer]
        calls: dict[str, Callable[[], Any]] = {
            "idle": lambda: toys.carry(peer, host.idle(toys.now_s)),
            "wake": lambda: toys.carry(peer, host.wake(toys.now_s)),
            "connected": lambda: toys.carry(peer, host.connected(other, toys.now_s)),
            "kill": lambda: toys.kill(peer),
            "told": lambda: host.messages_sent,  # whoever asks is told of all
            "order": lambda: self.say(peer, BOOTSTRAP, Message(messages.PROBE)),
        }
        if act in calls:
            calls[act]()
        elif act == "out":
            for told in range(self.plan.n):
                self.say(told, BOOTSTRAP, Message(messages.OUT, (other, b"signature")))
        elif act == "result":
            if which % 5 == 0:
                self.say(peer, CURATOR, Message(messages.RESULT, (), 3))
        elif act == "control":
            self._frame(peer, other, HEAD.pack(CONTROL | (0, POKE, RESEND)[which % 3], 0, 0, bytes(16)) + pack([]))
        elif act == "odd frame":
            flags = (DATA, 16, DATA | 16)[which % 3]
            whole = DATA_HEAD.pack(flags, 1, 0, bytes(16), which) + bytes((which % 256,)) + struct.pack(">Q", which)
            self._frame(peer, other, whole[: 1 + which % len(whole)])
        else:
            self.odd(act, which, peer, other)

    def lived(self, calm: int, acts: list[tuple[str, int]]) -> Lives:
        """Let so much be delivered, and then this happen."""
        for number in range(calm):
            self.happens("deliver", 2 * number)
        for act, which in acts:
            self.happens(act, which)
        for peer in range(self.plan.n):
            drawn = used_draws(self.toys, peer)
            assert len(drawn) == len(set(drawn)), "no noise is drawn or used twice"
        return self

    def known(self) -> list[tuple[Any, ...]]:
        """All that hosts know beyond their ledgers."""
        return [self._known(host) for _, host in sorted(self.toys.hosts.items())]

    def _known(self, host: Any) -> tuple[Any, ...]:
        sent, peers = host.messages_sent, host._peers
        slots = [name for name in (*PacketSpace.__slots__, *Link.__slots__) if name not in ("stamp", "_parts")]
        links = [[getattr(link, name) for name in slots] for _, link in sorted(peers.links.items())]
        parts = [[getattr(link.parts, name) for name in Parts.__slots__] for _, link in sorted(peers.links.items())]
        timers, machine = peers.acknowledgements, host._machine
        return (
            sent, links, parts, timers.owed_since_s, timers.ack_at_s, set(timers._in_flight), timers.check_at_s,
            machine._received_at, machine._passed, [repr(getattr(machine._machine, name)) for name in self.slots],
            host._machine_wake_at_s, host.fault_counts, host.proved,
        )  # fmt: skip

    def records(self, peer: Peer) -> list[tuple[Any, ...]]:
        def content(one: Record) -> tuple[Any, ...]:
            return one.kind, one.body, one.value

        return [content(one) for one in self.toys.records(peer)]
