"""The fast path and the long way leave the same bytes, whatever happens on the links."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.endings import COMPLAINT
from p2pdp.core.events import Hop, Passer
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Output, Send, Step
from p2pdp.ledger.journal import VIEW
from p2pdp.peer.effects import HopEffects
from p2pdp.peer.fast_path import FastPath
from p2pdp.peer.limits import TOO_MANY, WRONG
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import Check
from p2pdp.wire.codec import INT_MAX, pack_message, pack_value
from tests.support.toy_schedules import chance
from tests.support.toys import Quiet, Toys, UniqueDraws, forged

NOISE = Mechanism("gaussian", 4.0)
USUAL = (
    "token", "token", "token", "to itself", "stays", "two", "woken", "published", "fault", "another type", "vector",
    "no value", "no custody", "refused", "large",
)  # fmt: skip


class Hopper(Quiet):
    """Passes tokens on, mostly as a walk does; each step of a token is done in the way that the script says."""

    def __init__(self, me: Peer, n: int, script: list[str]) -> None:
        super().__init__()
        self.me, self.n, self.script = me, n, script
        self.made: list[Hop] = []  # hops, as they were made
        self.hops: list[Hop] = []  # and as they were told

    def start(self, now_s: float, draws: Draws) -> Step:
        return self._send(self.me, 0, 0, draws)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        self.told.append((sender, message))
        if len(message.fields) != 2 or message.type == COMPLAINT:
            return NOTHING
        item, step = message.fields
        value = message.value if isinstance(message.value, int) else 0
        return self._send(item, step, value % 1000, draws)

    def hop(self, sender: Peer, item: int, step: int, value: int, draws: Draws) -> tuple[Peer, int] | None:
        """As `receive`, where that sends a token and no more."""
        message = Message(TOKEN, (item, step), value)
        if step >= len(self.script) or self.script[step] not in ("token", "stays", "large") or picky(message):
            return None
        self.told.append((sender, message))
        (send,) = self._send(item, step, value % 1000, draws).sends
        if sender == self.me:  # it stayed here
            sender, item, step, _, _ = self.made.pop()
        self.made.append((sender, item, step, send.to, send.message.fields[1]))
        return send.to, send.message.value

    def hopped(self, hops: Iterable[Hop]) -> None:
        self.hops += hops

    def _send(self, item: int, step: int, value: int, draws: Draws) -> Step:
        if step >= len(self.script):
            return NOTHING
        how = self.script[step]
        value = value + draws.noise(NOISE, ())
        to = self.me if how == "to itself" else (self.me + 1 + draws.choice(self.n - 1)) % self.n
        to = self.me if how == "stays" else to
        carried: Any = {"vector": [value, value], "no value": None, "large": INT_MAX - value % 9}.get(how, value)
        message = Message("another" if how == "another type" else TOKEN, (item, step + 1), carried)
        custody = None if how == "no custody" or to == self.me else Custody(item, step + 1)
        send = Send(to, message, custody)
        return Step(
            sends=(send, Send(to, Message("aside", (step,)))) if how == "two" else (send,),
            wake_at_s=1000.0 if how == "woken" else None,
            outputs=(Output("saw", (step,)),) if how == "published" else (),
            faults=(Fault("odd", 0),) if how == "fault" else (),
        )


def picky(message: Message) -> str | None:
    """Refuses some."""
    return "refused" if message.type == TOKEN and isinstance(message.value, int) and message.value % 7 == 3 else None


def lived(
    script: list[str], n: int, chances: list[int], check: Check = lambda _message: None, *, fast: bool = True
) -> tuple[Any, ...]:
    """Everything that three hosts wrote, sent and wanted."""
    UniqueDraws.numbers = count(1000)
    passer: Any = (lambda machine: Passer(machine.hop, machine.hopped)) if fast else lambda _machine: None
    toys = Toys({peer: lambda peer=peer: Hopper(peer, n, script) for peer in range(n)}, n, passer, check=check)  # type: ignore[misc]
    toys.boot_all()
    chance(toys, chances)
    toys.run(toys.now_s + 90.0)
    told = [toys.machines[peer].told for peer in range(n)]
    hosts = [(toys.hosts[peer].fault_counts, toys.hosts[peer].messages_sent) for peer in range(n)]
    assert all(toys.machines[peer].hops == toys.machines[peer].made for peer in range(n))
    return toys.log, toys.disks, told, hosts, [toys.hosts[peer].proved for peer in range(n)]


@given(
    script=st.lists(st.sampled_from(USUAL), max_size=12),
    n=st.integers(2, 4),
    chances=st.lists(st.integers(0, 10**4), max_size=40),
)
def test_both_ways_leave_the_same_bytes(script: list[str], n: int, chances: list[int]) -> None:
    expected = lived(script, n, chances, picky, fast=False)
    assert lived(script, n, chances, picky) == expected


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("idle_after", [1000, 150, 70, 7])
def test_what_gathers_over_many_hops_is_the_same_too(n: int, idle_after: int) -> None:
    script = ["token"] * 1500  # several times what is gathered at most, by each
    deliveries = [5] * idle_after
    chances = [*deliveries, 4, *deliveries, 4 + 11] * (700 // idle_after)
    expected = lived(script, n, chances, fast=False)
    assert lived(script, n, chances) == expected


def test_the_fast_path_is_taken_where_nothing_is_out_of_the_ordinary() -> None:
    taken: list[bool] = []
    take = FastPath.take

    def watched(self: FastPath, *arguments: Any) -> HopEffects | None:
        found = take(self, *arguments)
        taken.append(found is not None)
        return found

    with patch.object(FastPath, "take", watched):
        log, disks, *_ = lived(["token"] * 40, 3, [])
    assert sum(taken) > 80
    assert all(len(disks[peer][VIEW]) > 1000 for peer in range(3))
    whole = [effects for _, effects in log if len(effects.frames) == 1 and len(effects.writes) == 1]
    assert len(whole) > 60, "a hop is one write and one frame"


@pytest.mark.parametrize("fast", [False, True])
def test_whose_messages_were_wrong_too_often_is_slowed_here_too(fast: bool) -> None:
    passer: Any = (lambda machine: Passer(machine.hop, machine.hopped)) if fast else lambda _machine: None
    toys = Toys({1: lambda: Hopper(1, 2, ["fault", *["token"] * 9])}, 2, passer, check=lambda _message: None)
    toys.boot(1)
    link = Link(1, toys.hosts[1]._credentials.stamp(0))

    def sends(step: int) -> None:
        item = link.push(pack_message(Message(TOKEN, (0, step))), bytes(16) + pack_value(8))
        toys.give(1, forged(0, 1, link.data(item)))

    sends(1)
    for _ in range(int(WRONG.burst)):
        sends(0)
    assert TOO_MANY not in toys.hosts[1].fault_counts
    sends(2)
    assert toys.hosts[1].fault_counts[TOO_MANY] == 1
