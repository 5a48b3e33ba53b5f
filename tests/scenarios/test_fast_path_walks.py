"""Whatever happens to users of a walk, the fast path leaves what the long way leaves: effects, ledgers, knowledge.

Tokens, exclusions, orders, control frames, kills and restarts, loss, copies, and authentic frames that make no sense.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Passer
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.peer.acknowledgements import PacketSpace
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import CONTROL, DATA, DATA_HEAD, HEAD, POKE, RESEND
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.walk.walking import VALUE_MAX, Walk, WalkPlan, check_token
from p2pdp.tasks.inputs import NumberInputs
from p2pdp.wire.codec import pack, pack_message, pack_value
from tests.support.toys import Toys, UniqueDraws, forged, used_draws

NOISE = Mechanism("gaussian", 4.0)
TOKEN = b"\x92\xa5token"
ODD_FIELDS = (
    b"\x91\x01", b"\x93\x00\x01\x02", b"\x92\xc0\x01", b"\x92\x00\xcf" + b"\xff" * 8, b"\x92\x00\xd3\x80" + bytes(7),
    b"\x92\x00\xa1a", b"\x92\x00\x90", b"\x92\x81\x90\x01\x01", b"\x92\x00\xd6\xff\xff\xff\xff\xff", b"\x92\x00\xc1",
    b"\x92\x00\xdd\xff\xff\xff\xff", b"\x92\x00", b"\x92\x00\xcb" + bytes(8), b"\xdc\x00\x02\x00\x05", b"\x92\x00\xc3",
)  # fmt: skip
ODD_VALUES = (
    b"", b"\x01", pack_value(1.5), b"\x02" + b"\xff" * 8, pack_value(b"12345678"), pack_value(VALUE_MAX + 1),
    pack_value(-VALUE_MAX - 1), pack_value(2**63 - 1),
)  # fmt: skip
ACTS = (
    *("deliver",) * 12, "any", "twice", "lose", "idle", "tick", "wake", "connected", "kill", "boot", "out",
    "order", "lost", "told", "result", "control", "odd fields", "odd value", "odd frame", "token",
)  # fmt: skip


def problem(plan: WalkPlan, message: Message) -> str | None:
    return COMMON.problem(message) or check_token(plan, message)


@dataclass
class Lives:
    """Users of one walk, to whom things happen."""

    plan: WalkPlan
    fast: bool = True

    def __post_init__(self) -> None:
        n = self.plan.n
        UniqueDraws.numbers = count(1000)
        make: dict[Peer, Any] = {peer: partial(self._machine, peer) for peer in range(n)}
        check = partial(problem, self.plan)
        self.toys = Toys(make, n, self._passer, check=check)
        self.toys.boot_all()
        for peer in range(n):
            self._say(peer, BOOTSTRAP, Message(messages.GO))
        for item in range(self.plan.tokens):
            self._say(item % n, BOOTSTRAP, Message(messages.BEGIN, (item, 0)))

    def _machine(self, peer: Peer) -> Participant:
        others = tuple(other for other in range(self.plan.n) if other != peer)
        return Participant(peer, Walk(self.plan, peer, others, NumberInputs([3 * peer + 1, 7], 1)), COMMON)

    def _passer(self, participant: Any) -> Passer | None:
        return Passer(participant._machine.hop, participant.hopped) if self.fast else None

    def _say(self, to: Peer, sender: Peer, message: Message) -> None:
        value = pack_value(message.value)
        self._give(to, sender, pack_message(message), bytes(SALT_BYTES) + value if value else b"")

    def _give(self, to: Peer, sender: Peer, message: bytes, part: bytes) -> None:
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
        if act == "idle":
            toys.carry(peer, host.idle(toys.now_s))
        elif act == "wake":
            toys.carry(peer, host.wake(toys.now_s))
        elif act == "connected":
            toys.carry(peer, host.connected(other, toys.now_s))
        elif act == "kill":
            toys.kill(peer)
        elif act == "told":
            assert host.messages_sent >= 0  # whoever asks is told of all
        elif act in ("out", "order", "lost", "result"):
            self._from_role(act, which, peer, other)
        else:
            self._from_user(act, which, peer, other)

    def _from_role(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        walk = self.toys.hosts[peer]._machine._machine  # type: ignore[attr-defined]
        item = which % self.plan.tokens
        if act == "out":
            for told in range(self.plan.n):
                self._say(told, BOOTSTRAP, Message(messages.OUT, (other, b"signature")))
        elif act == "order":
            self._say(peer, BOOTSTRAP, Message(messages.PROBE))
        elif act == "lost" and item in walk._passed:
            self._say(peer, BOOTSTRAP, Message(messages.LOST, (item, walk._passed[item][1])))
        elif act == "result" and which % 5 == 0:
            self._say(peer, CURATOR, Message(messages.RESULT, (), 3))

    def _from_user(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        walk = self.toys.hosts[peer]._machine._machine  # type: ignore[attr-defined]
        item, salt, five = which % self.plan.tokens, bytes(SALT_BYTES), pack_value(5)
        held = walk._held_at.get(item, 0)
        if act == "control":
            self._frame(peer, other, HEAD.pack(CONTROL | (0, POKE, RESEND)[which % 3], 0, 0, bytes(16)) + pack([]))
        elif act == "odd fields":
            self._give(peer, other, TOKEN + ODD_FIELDS[which % len(ODD_FIELDS)], salt + five)
        elif act == "odd value":
            value = ODD_VALUES[which % len(ODD_VALUES)]
            self._give(peer, other, pack_message(Message(messages.TOKEN, (item, held + 1))), salt + value)
        elif act == "odd frame":
            whole = (
                DATA_HEAD.pack((DATA, 16, DATA | 16)[which % 3], 1, 0, bytes(16), which)
                + bytes((which % 256,))
                + struct.pack(">Q", which)
            )
            self._frame(peer, other, whole[: 1 + which % len(whole)])
        elif act == "token":
            message = pack_message(Message(messages.TOKEN, (item, held + 1 + which % 3)))
            self._give(peer, other, message, salt + five)

    def left(self) -> tuple[Any, ...]:
        toys = self.toys
        for peer in range(self.plan.n):
            drawn = used_draws(toys, peer)
            assert len(drawn) == len(set(drawn)), "no noise is drawn or used twice"
        return toys.log, toys.disks, [known(host) for _, host in sorted(toys.hosts.items())]


def known(host: Any) -> tuple[Any, ...]:
    """All that a host knows beyond its ledger."""
    sent, peers = host.messages_sent, host._peers
    slots = [name for name in (*PacketSpace.__slots__, *Link.__slots__) if name != "stamp"]
    links = [[getattr(link, name) for name in slots] for _, link in sorted(peers.links.items())]
    timers, machine = peers.acknowledgements, host._machine
    return (
        sent, links, timers.owed_since_s, timers.ack_at_s, set(timers._in_flight), timers.check_at_s,
        machine._received_at,
        machine._passed, machine._machine._passed, machine._machine._held_at, host.fault_counts, host.proved,
    )  # fmt: skip


@given(
    n=st.integers(2, 4),
    tokens=st.integers(1, 3),
    order=st.sampled_from(["complete", "graph"]),
    steps=st.sampled_from([5, 40, 4000]),
    acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10**4)), max_size=150),
    calm=st.integers(0, 200),
)
def test_the_fast_path_leaves_what_the_long_way_leaves(
    n: int, tokens: int, order: str, steps: int, acts: list[tuple[str, int]], calm: int
) -> None:
    plan = WalkPlan(order=order, n=n, steps=steps, tokens=tokens, noise=NOISE, shape=())
    left = []
    for fast in (True, False):
        lives = Lives(plan, fast)
        for number in range(calm):
            lives.happens("deliver", 2 * number)
        for act, which in acts:
            lives.happens(act, which)
        left.append(lives.left())
    assert left[0] == left[1]
