"""Shuffling machines in a world of their own: links in order, any interleaving, late and gone users, no keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.step import Message
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.protocols.shuffle.plan import MARK, RELAY, ShufflePlan, check_shuffle
from p2pdp.protocols.shuffle.shuffling import Shuffle
from p2pdp.topology.graphs import Graph
from tests.support.machine_links import MachineLinks
from tests.support.pairs import NoPairs

PATIENCE_S = 10.0
NAME_BYTES = 8


class Sealed:
    """Inputs whose seal can be read: the report's name, and whose it is or 255 for a dummy."""

    def __init__(self, user: Peer) -> None:
        self._user = user
        self.made = 0

    def sealed(self, name: int, randomness: Any, seed: Any, place: int = 0) -> bytes:
        self.made += 1
        return name.to_bytes(NAME_BYTES, "big") + bytes([self._user])

    def sealed_dummy(self, name: int, randomness: Any, seed: Any) -> bytes:
        return name.to_bytes(NAME_BYTES, "big") + bytes([255])


class Dice(NoPairs):
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
class ShuffleWorld(MachineLinks):
    """Shuffling machines, and what the curator got."""

    plan: ShufflePlan
    reports: list[tuple[Peer, int]] = field(default_factory=list)  # who handed in, whose it is
    names: list[int] = field(default_factory=list)
    hops: list[int] = field(default_factory=list)  # numbers of all hops between users
    finished: set[Peer] = field(default_factory=set)
    frames: dict[tuple[Peer, Peer, int], int] = field(default_factory=dict)  # sent in each round on each link

    def __post_init__(self) -> None:
        super().__post_init__()
        self.draws = [Dice(self.seed * 1000 + user) for user in range(self.graph.n)]
        self.inputs = [Sealed(user) for user in range(self.graph.n)]
        self.machines = [
            Shuffle(self.plan, user, self.graph.neighbours[user], self.inputs[user])  # type: ignore[arg-type]
            for user in range(self.graph.n)
        ]

    def sent(self, user: Peer, to: Peer, message: Message) -> None:
        assert check_shuffle(self.plan, message) is None
        if to == CURATOR and message.type == messages.REPORT:
            assert user not in self.finished
            self.names.append(int.from_bytes(message.value[:NAME_BYTES], "big"))
            self.reports.append((user, message.value[NAME_BYTES]))
        elif to == CURATOR:
            assert user not in self.finished
            self.finished.add(user)
        else:
            self.post(user, to, message)
            if message.type == RELAY:
                self.hops.append(message.fields[1])
            if message.type != MARK:
                key = user, to, self.machines[user]._round
                self.frames[key] = self.frames.get(key, 0) + 1

    def run(self, most: int = 400) -> None:
        """Delivers and lets time pass until everybody who is in has handed in."""
        for _ in range(most):
            self.deliver_all()
            if self.finished >= set(range(self.graph.n)) - self.out:
                return
            self.pass_time(PATIENCE_S / 2)
        raise AssertionError("shuffling does not end")
