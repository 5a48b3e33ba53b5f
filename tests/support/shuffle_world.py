"""Shuffling machines in a world of their own: links in order, any interleaving, late and gone users, no keys."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.step import Message, Step
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.protocols.shuffle.messages import MARK, RELAY
from p2pdp.protocols.shuffle.plan import ShufflePlan, check_shuffle
from p2pdp.protocols.shuffle.shuffling import Shuffle
from p2pdp.topology.graphs import Graph

PATIENCE_S = 10.0
NAME_BYTES = 8


class Sealed:
    """Inputs whose seal can be read: the report's name, and whose it is or 255 for a dummy."""

    def __init__(self, user: Peer) -> None:
        self._user = user
        self.made = 0

    def sealed(self, name: int, randomness: Any, seed: Any) -> bytes:
        self.made += 1
        return name.to_bytes(NAME_BYTES, "big") + bytes([self._user])

    def sealed_dummy(self, name: int, randomness: Any, seed: Any) -> bytes:
        return name.to_bytes(NAME_BYTES, "big") + bytes([255])


class Dice:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing is kept secret with it

    def noise(self, mechanism: Mechanism, shape: tuple[int, ...]) -> Any:
        return 0

    def choice(self, options: int) -> int:
        return self._random.randrange(options)

    def meet(self, number: int, coin: float) -> list[Peer]:
        raise AssertionError("shuffling has no coins")


def plan_of(graph: Graph, rounds: int, **more: Any) -> ShufflePlan:
    terms: dict[str, Any] = {"stay": 0.0, "single": False, "slots": None, "patience_s": PATIENCE_S, "overlap": 0.0}
    terms |= {"sealed_bytes": NAME_BYTES + 1, "dummies": (0.0, 0.0), "randomizer": KaryReports(2, None)}
    return ShufflePlan(n=graph.n, rounds=rounds, **(terms | more))


@dataclass
class ShuffleWorld:
    """Messages wait on links; `deliver` takes one, `pass_time` lets everybody wake."""

    plan: ShufflePlan
    graph: Graph
    seed: int = 0
    now_s: float = 0.0
    links: dict[tuple[Peer, Peer], deque[Message]] = field(default_factory=dict)
    reports: list[tuple[Peer, int]] = field(default_factory=list)  # who handed in, whose it is
    names: list[int] = field(default_factory=list)
    hops: list[int] = field(default_factory=list)  # numbers of all hops between users
    finished: set[Peer] = field(default_factory=set)
    faults: list[Any] = field(default_factory=list)
    frames: dict[tuple[Peer, Peer, int], int] = field(default_factory=dict)  # sent in each round on each link
    out: set[Peer] = field(default_factory=set)
    asleep: set[Peer] = field(default_factory=set)
    wake_at_s: dict[Peer, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - nothing is kept secret with it
        self.draws = [Dice(self.seed * 1000 + user) for user in range(self.graph.n)]
        self.inputs = [Sealed(user) for user in range(self.graph.n)]
        self.machines: list[Any] = [
            Shuffle(self.plan, user, self.graph.neighbours[user], self.inputs[user])  # type: ignore[arg-type]
            for user in range(self.graph.n)
        ]

    def start(self, *users: Peer) -> None:
        for user in users or range(self.graph.n):
            self._act(user, self.machines[user].start(self.now_s, self.draws[user]))

    def _act(self, user: Peer, step: Step) -> None:
        self.faults += step.faults
        if step.wake_at_s is not None:
            self.wake_at_s[user] = step.wake_at_s
        for send in step.sends:
            message = send.message
            assert check_shuffle(self.plan, message) is None
            if send.to == CURATOR and message.type == messages.REPORT:
                assert user not in self.finished
                self.names.append(int.from_bytes(message.value[:NAME_BYTES], "big"))
                self.reports.append((user, message.value[NAME_BYTES]))
            elif send.to == CURATOR:
                assert user not in self.finished
                self.finished.add(user)
            else:
                self.links.setdefault((user, send.to), deque()).append(message)
                if message.type == RELAY:
                    self.hops.append(message.fields[1])
                if message.type != MARK:
                    key = user, send.to, self.machines[user]._round
                    self.frames[key] = self.frames.get(key, 0) + 1

    def deliver(self) -> bool:
        """One message of a random link; False where there is none."""
        gone = self.out | self.asleep
        links = [link for link, queue in self.links.items() if queue and link[1] not in gone]
        if not links:
            return False
        sender, receiver = links[self.random.randrange(len(links))]
        message = self.links[sender, receiver].popleft()
        if sender not in self.out:
            self._act(receiver, self.machines[receiver].receive(sender, message, self.now_s, self.draws[receiver]))
        return True

    def deliver_all(self) -> None:
        while self.deliver():
            pass

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        for user in range(self.graph.n):
            if user not in self.out | self.asleep and self.wake_at_s.get(user, float("inf")) <= self.now_s:
                self._act(user, self.machines[user].wake(self.now_s, self.draws[user]))

    def exclude(self, peer: Peer) -> None:
        self.out.add(peer)
        for user in self.graph.neighbours[peer]:
            if user not in self.out:
                self._act(user, self.machines[user].excluded(peer, self.now_s, self.draws[user]))

    def run(self, most: int = 400) -> None:
        """Delivers and lets time pass until everybody who is in has handed in."""
        for _ in range(most):
            self.deliver_all()
            if self.finished >= set(range(self.graph.n)) - self.out:
                return
            self.pass_time(PATIENCE_S / 2)
        raise AssertionError("shuffling does not end")
