"""Machines whose messages wait on links until a test delivers them: any interleaving, late and gone users."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.core.step import Message, Step
from p2pdp.topology.graphs import Graph


@dataclass
class MachineLinks:
    """Links are in order, each for itself; `deliver` takes one message, `pass_time` lets everybody wake."""

    plan: Any
    graph: Graph
    _: KW_ONLY
    seed: int = 0
    now_s: float = 0.0
    links: dict[tuple[Peer, Peer], deque[Message]] = field(default_factory=dict)
    faults: list[Any] = field(default_factory=list)
    out: set[Peer] = field(default_factory=set)
    asleep: set[Peer] = field(default_factory=set)
    wake_at_s: dict[Peer, float] = field(default_factory=dict)
    machines: list[Any] = field(default_factory=list)
    draws: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - nothing is kept secret with it

    def sent(self, user: Peer, to: Peer, message: Message) -> None:
        """Take a message that a machine sends; users' messages are for `post`."""
        raise NotImplementedError

    def post(self, user: Peer, to: Peer, message: Message) -> None:
        self.links.setdefault((user, to), deque()).append(message)

    def start(self, *users: Peer) -> None:
        for user in users or range(self.graph.n):
            self._act(user, self.machines[user].start(self.now_s, self.draws[user]))

    def _act(self, user: Peer, step: Step) -> None:
        self.faults += step.faults
        if step.wake_at_s is not None:
            self.wake_at_s[user] = step.wake_at_s
        for send in step.sends:
            self.sent(user, send.to, send.message)

    def waiting(self) -> list[tuple[Peer, Peer]]:
        gone = self.out | self.asleep
        return [link for link, queue in self.links.items() if queue and link[1] not in gone]

    def deliver(self) -> bool:
        """Deliver one message of a random link; return False where there is none."""
        links = self.waiting()
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
            if user not in self.out | self.asleep and self.wake_at_s.get(user, math.inf) <= self.now_s:
                self._act(user, self.machines[user].wake(self.now_s, self.draws[user]))

    def exclude(self, peer: Peer) -> None:
        self.out.add(peer)
        for user in self.graph.neighbours[peer]:
            if user not in self.out:
                self._act(user, self.machines[user].excluded(peer, self.now_s, self.draws[user]))
