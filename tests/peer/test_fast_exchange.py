"""Exchanges the fast way and the long way leave the same records, whatever happens on the links."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.endings import COMPLAINT
from p2pdp.core.events import Exchanger
from p2pdp.core.ids import Peer
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.ledger.records import ENTRY_RECORDS_MAX, RECEIVED, SENT
from p2pdp.peer.limits import TOO_MANY, WRONG
from p2pdp.peer.link import Link
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.fast_lives import watched_takes
from tests.support.toy_schedules import ACTIONS, chance, come_back, happen
from tests.support.toys import Quiet, Toys, UniqueDraws, consistent, forged

NOISE = Mechanism("gaussian", 4.0)
STATE = "state"
USUAL = (
    "state", "state", "state", "state", "noise", "to itself", "another type", "two", "whole", "no value", "vector",
    "published", "woken", "fault", "refused",
)  # fmt: skip


class Meeter(Quiet):
    """Sends all others a number in each round, and opens the next one with what came; rounds go as the script says."""

    def __init__(self, me: Peer, n: int, script: list[str]) -> None:
        super().__init__()
        self.n, self.me, self.script = n, me, script
        self.others = [peer for peer in range(n) if peer != me]
        self.round, self.value = 0, float(me)
        self.came: dict[int, dict[Peer, float]] = {}

    def start(self, now_s: float, draws: Draws) -> Step:
        return self._open(now_s, draws)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if message.type == COMPLAINT or sender == self.me or message.type == "aside":
            self.told.append((sender, message.type))
            return NOTHING
        step = None
        if message.type in (STATE, "another") and len(message.fields) == 2:
            step = self._took(sender, message, now_s, draws)
        return step or Step(faults=(Fault("unexpected_message", sender),))

    def exchange(self, sender: Peer, fields: tuple[int, ...], value: float, now_s: float, draws: Draws) -> Step | None:
        message = Message(STATE, fields, value)
        return None if picky(message) else self._took(sender, message, now_s, draws)

    def _took(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step | None:
        number, parity = message.fields
        came = self.came.setdefault(number, {})
        if parity != number % 2 or sender in came or number < self.round:
            return None
        value = message.value if isinstance(message.value, float) else 0.5
        self.told.append((sender, message.type, message.fields, value, now_s))
        came[sender] = value
        step, late_s = NOTHING, now_s + 5.0 if sender == 1 else None
        while len(self.came.get(self.round, {})) == len(self.others):
            self.value = (self.value + sum(self.came.pop(self.round).values())) / self.n + 1.0
            step = step.then(self._open(now_s, draws))
        return step.then(Step(wake_at_s=late_s))

    def _open(self, now_s: float, draws: Draws) -> Step:
        self.round += 1
        if self.round > len(self.script):
            return NOTHING
        how = self.script[self.round - 1]
        if how == "noise":
            self.value += draws.noise(NOISE, ())
        value: Any = {"whole": 3, "no value": None, "refused": 77.0}.get(how, self.value)
        message = Message("another" if how == "another type" else STATE, (self.round, self.round % 2), value)
        sends = [Send(peer, message) for peer in self.others]
        if how == "vector":
            sends = [Send(peer, Message(STATE, message.fields, bytes(9))) for peer in self.others]
        elif how == "two":
            sends += [Send(peer, Message("aside")) for peer in self.others]
        elif how == "to itself":
            sends.append(Send(self.me, Message("aside", (), self.value)))
        return Step(
            sends=tuple(sends),
            wake_at_s=now_s + 7.0 if how == "woken" else None,
            outputs=(Output("saw", (self.round,)),) if how == "published" else (),
            faults=(Fault("odd", 0),) if how == "fault" else (),
        )


def picky(message: Message) -> str | None:
    return "refused" if message.type == STATE and message.value == 77.0 else None


def meeters(script: list[str], n: int, *, fast: bool = True) -> Toys:
    UniqueDraws.numbers = count(1000)
    passer: Any = (lambda machine: Exchanger(STATE, 2, machine.exchange)) if fast else lambda _machine: None
    make: Any = {peer: partial(Meeter, peer, n, script) for peer in range(n)}
    return Toys(make, n, passer, check=picky)


def lived(script: list[str], n: int, chances: list[int], *, fast: bool = True, gathers: bool = False) -> Toys:
    """What becomes of some hosts on links that lose, repeat and reorder."""
    toys = meeters(script, n, fast=fast)
    toys.gathers = gathers
    toys.boot_all()
    chance(toys, chances)
    toys.run(toys.now_s + 90.0)
    return toys


def known(toys: Toys) -> list[Any]:
    """What machines were told, and what hosts count."""
    hosts = toys.hosts.values()
    return [
        [machine.told for machine in toys.machines.values()],
        [machine.value for machine in toys.machines.values()],
        [(host.fault_counts, host.messages_sent, host.proved) for host in hosts],
    ]


SCRIPTS = st.lists(st.sampled_from(USUAL), max_size=8)
CHANCES = st.lists(st.integers(0, 10**4), max_size=60)


@given(script=SCRIPTS, n=st.integers(2, 4), chances=CHANCES)
def test_both_ways_leave_the_same_bytes(script: list[str], n: int, chances: list[int]) -> None:
    long, fast = (lived(script, n, chances, fast=fast) for fast in (False, True))
    assert fast.log == long.log
    assert fast.disks == long.disks
    assert known(fast) == known(long)


@given(script=SCRIPTS, n=st.integers(2, 4), chances=CHANCES)
def test_what_a_shell_writes_later_is_the_same_but_for_entries(script: list[str], n: int, chances: list[int]) -> None:
    long = lived(script, n, chances, fast=False)
    gathering = lived(script, n, chances, gathers=True)
    assert known(gathering) == known(long)
    for peer in range(n):
        assert contents(gathering, peer) == contents(long, peer)
        assert frames(gathering, peer) == frames(long, peer)


def contents(toys: Toys, peer: Peer) -> list[Any]:
    return [(one.kind, one.body, one.value) for one in toys.records(peer)]


def frames(toys: Toys, peer: Peer) -> list[Any]:
    return [frame for who, effects in toys.log for frame in effects.frames if who == peer]


def test_a_round_is_one_write_and_its_frames() -> None:
    with watched_takes() as taken:
        toys = lived(["state"] * 30, 4, [], gathers=True)
    assert sum(taken) > 30 * 4 * 3 - 20
    written = [effects for _, effects in toys.log if effects.writes and effects.frames]
    usual = [effects for effects in written if (len(effects.writes), len(effects.frames)) == (1, 3)]
    assert len(usual) > 30 * 4 - 20
    assert sum(len(effects.writes) > 0 for _, effects in toys.log) < 30 * 4 + 30, "others wait for them"
    consistent(toys)


def test_no_more_gathers_than_an_entry_holds() -> None:
    toys = meeters(["state"], 2)
    toys.gathers = True
    toys.boot(0)
    link = Link(0, toys.hosts[0]._credentials.stamp(1))
    for number in range(2, 3 * ENTRY_RECORDS_MAX):
        item = link.push(pack_message(Message(STATE, (number, number % 2), 1.5)), bytes(16) + pack_value(1.5))
        toys.give(0, forged(1, 0, link.data(item)))
    kinds = [record.kind for record in toys.records(0)]
    assert 2 * ENTRY_RECORDS_MAX < kinds.count(RECEIVED) < 3 * ENTRY_RECORDS_MAX - 2
    toys.wake_up(0, 5.0)  # an acknowledgement leaves: all is written
    assert [record.kind for record in toys.records(0)].count(RECEIVED) == 3 * ENTRY_RECORDS_MAX - 2


@given(
    n=st.integers(2, 3),
    rounds=st.integers(1, 6),
    actions=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 50)), max_size=60),
    holds=st.booleans(),
)
def test_stops_undo_nothing_that_anybody_was_told(
    n: int, rounds: int, actions: list[tuple[str, int, int]], holds: bool
) -> None:
    toys, undisturbed = meeters(["state"] * rounds, n), meeters(["state"] * rounds, n)
    toys.gathers, toys.holds = True, holds
    for world in (toys, undisturbed):
        world.boot_all()
    for action, peer, pick in actions:
        happen(toys, action, peer % n, pick)
        consistent(toys)
    for world in (toys, undisturbed):
        come_back(world)
    assert [one.value for one in toys.machines.values()] == [one.value for one in undisturbed.machines.values()]
    assert not any(host.stopped for host in toys.hosts.values())
    for peer in toys.make:
        kinds = [record.kind for record in toys.records(peer)]
        assert kinds.count(SENT) == kinds.count(RECEIVED) == rounds * (n - 1)


@pytest.mark.parametrize("fast", [False, True])
def test_whose_messages_were_wrong_too_often_is_slowed_here_too(fast: bool) -> None:
    toys = meeters(["state"], 3, fast=fast)
    toys.boot(0)
    link = Link(0, toys.hosts[0]._credentials.stamp(1))

    def sends(number: int) -> None:
        item = link.push(pack_message(Message(STATE, (number, number % 2))), bytes(16) + pack_value(1.5))
        toys.give(0, forged(1, 0, link.data(item), 3))

    sends(2)
    for _ in range(int(WRONG.burst)):
        sends(2)
    assert TOO_MANY not in toys.hosts[0].fault_counts
    sends(3)
    assert toys.hosts[0].fault_counts[TOO_MANY] == 1
    assert len([one for one in toys.records(0) if one.kind == RECEIVED]) == 1 + WRONG.burst
