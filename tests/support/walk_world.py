"""A tiny world that walks machines through a run in memory: no links, no ledger, no clock that moves.

Draws come from a script that the test chooses: seeded, all the same, or symbols. Messages to oneself are
delivered at once, as a host does, all others in the order sent. Nothing else of a host is here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.events import Event, Machine, Received, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import BEGIN, TOKEN, TOTAL
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.core.step import Fault, Message, Send, Step
from p2pdp.core.values import LinearForm, Share, Source, pair_source
from p2pdp.crypto.pair_coins import PairCoins
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.protocols.walk.options import WalkPart
from p2pdp.tasks.inputs import Inputs
from tests.support.pairs import PairDraws


def sum_spec(
    *, n: int = 5, laps: int | None = 2, hops: int | None = None, kind: str = "complete", tokens: int = 1, **noise: Any
) -> Spec:
    """A walk.sum with values in [0, 1]: a ring of so many laps, or a random walk of so many hops."""
    return walk_spec("walk.sum", n, laps, hops, kind, tokens, TaskPart("sum"), NoisePart(**_or_gaussian(noise)))


def histogram_spec(
    *,
    n: int = 5,
    laps: int | None = 2,
    hops: int | None = None,
    tokens: int = 1,
    categories: int = 3,
    epsilon: float = 1.0,
) -> Spec:
    """A walk.histogram; epsilon 0 stands for no randomization."""
    noise = NoisePart("randomized_response", epsilon=epsilon) if epsilon else NoisePart("none")
    task = TaskPart("histogram", categories=categories)
    return walk_spec("walk.histogram", n, laps, hops, "complete", tokens, task, noise)


def _or_gaussian(noise: dict[str, Any]) -> dict[str, Any]:
    return noise if "mechanism" in noise else {"mechanism": "gaussian", "sigma": 1.0, **noise}


def walk_spec(
    protocol: str, n: int, laps: int | None, hops: int | None, kind: str, tokens: int, task: TaskPart, noise: NoisePart
) -> Spec:
    ring = hops is None
    return Spec(
        run=RunPart(protocol, n),
        graph=GraphPart("ring" if ring else kind),
        options=WalkPart("ring", laps=laps, tokens=tokens) if ring else WalkPart("random", hops=hops, tokens=tokens),
        noise=noise,
        data=DataPart("uniform", clip=(0.0, 1.0)),
        task=task,
    )


class SeededDraws(PairDraws):
    """Small seeded numbers for noise, uniform choices; everything drawn is kept in `drawn` and `chosen`."""

    def __init__(self, seed: int) -> None:
        super().__init__(0, seed)
        self._noise, self._choices = (np.random.default_rng([seed, stream]) for stream in (0, 1))
        self.drawn: list[tuple[Mechanism, Any]] = []
        self.chosen: list[tuple[int, int]] = []
        self.coins: PairCoins | None = None  # with whom this peer shares some, the test says

    def meet(self, number: int, coin: float) -> list[Peer]:
        assert self.coins is not None
        return self.coins.neighbours_in(number, coin)

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        if mechanism.name == "randomized_response":
            value: Any = int(self._noise.integers(-1, mechanism.categories))
        elif mechanism.name == "uniform_counts":
            value = self._noise.multinomial(int(mechanism.scale), np.full(shape, 1 / shape[0])).astype(np.int64)
        else:
            most = int(8.0 * mechanism.scale) if mechanism.name == "gaussian" else 2**40
            drawn = self._noise.integers(-most, most, size=shape)
            value = int(drawn) if shape == () else drawn
        self.drawn.append((mechanism, value))
        return value

    def choice(self, options: int) -> int:
        picked = int(self._choices.integers(options))
        self.chosen.append((options, picked))
        return picked


class SymbolDraws(SeededDraws):
    """Symbols for noise, numbered for each peer, and seeded choices."""

    def __init__(self, peer: Peer, seed: int) -> None:
        super().__init__(seed)
        self._peer = peer

    def noise(self, mechanism: Mechanism, shape: Shape) -> LinearForm:
        form = LinearForm.of(Source("draw", self._peer, len(self.drawn)))
        self.drawn.append((mechanism, form))
        return form

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> LinearForm:
        return LinearForm.of(pair_source(self._peer, peer, number))

    def pair_key(self, peer: Peer, number: int) -> Any:
        return Share(pair_source(self._peer, peer, number))


class ScriptedDraws(SeededDraws):
    """Choices as the test lists them."""

    def __init__(self, choices: Iterable[int] = ()) -> None:
        super().__init__(0)
        self._listed = list(choices)

    def choice(self, options: int) -> int:
        picked = self._listed.pop(0)
        assert picked < options
        self.chosen.append((options, picked))
        return picked


@dataclass(frozen=True)
class Visit:
    """One `own` or `received` token: who contributes at which step, and the value before it did."""

    item: int
    step: int
    user: Peer
    sender: Peer
    before: Any = field(repr=False)


@dataclass
class World:
    plan: Any
    machines: dict[Peer, Machine]
    draws: dict[Peer, Any]
    now_s: float = 0.0
    visits: list[Visit] = field(default_factory=list)
    totals: dict[int, Any] = field(default_factory=dict)
    sends: list[tuple[Peer, Send]] = field(default_factory=list)
    faults: list[tuple[Peer, Fault]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    others: list[tuple[Peer, Send]] = field(default_factory=list)  # to bootstrap, or to users who are gone
    gone: set[Peer] = field(default_factory=set)
    collector: Any = None  # of a protocol with a decision, which is made when it may be
    _waiting: deque[tuple[Peer, Event]] = field(default_factory=deque)

    def begin(self) -> None:
        for start in self.plan.starts:
            self.post(start.user, BOOTSTRAP, Message(BEGIN, (start.item, 0)))

    def post(self, to: Peer, sender: Peer, message: Message) -> None:
        self._waiting.append((to, Received(sender, message)))

    def run(self) -> None:
        """Until nothing is under way any more."""
        while self._waiting:
            to, event = self._waiting.popleft()
            if to in self.gone:
                continue
            self.happens(to, event)

    def walk(self) -> World:
        self.begin()
        self.run()
        return self

    def happens(self, to: Peer, event: Event) -> None:
        """One event and the messages to oneself that follow from it; the rest waits for `run`."""
        mine = deque([event])
        while mine:
            event = mine.popleft()
            if isinstance(event, Received) and event.message.type == TOKEN:
                item, step = event.message.fields
                self.visits.append(Visit(item, step, to, event.sender, event.message.value))
            step_taken = tell(self.machines[to], event, self.now_s, self.draws[to])
            self.steps.append(step_taken)
            self.faults += [(to, fault) for fault in step_taken.faults]
            for send in step_taken.sends:
                if send.to == to:
                    mine.append(Received(to, send.message))
                else:
                    self._deliver(to, send)

    def _deliver(self, sender: Peer, send: Send) -> None:
        self.sends.append((sender, send))
        if send.to == CURATOR and send.message.type == TOTAL:
            assert send.message.fields[0] not in self.totals
            self.totals[send.message.fields[0]] = send.message.value
        elif send.to == CURATOR and self.collector is not None:
            self._collect(sender, send.message)
        elif send.to in self.machines and send.to not in self.gone:
            self.post(send.to, sender, send.message)
        else:
            self.others.append((sender, send))

    def _collect(self, sender: Peer, message: Message) -> None:
        fault = self.collector.take(sender, message)
        self.faults += [] if fault is None else [(CURATOR, Fault(fault, sender))]
        absent = self.collector.collected
        if absent is not None:
            assert self.collector.decided(absent) is None
            for user in sorted(self.machines.keys() - set(absent)):
                self.post(user, BOOTSTRAP, Message(SURVIVORS, (absent, bytes(64))))

    @property
    def drawn(self) -> list[tuple[Mechanism, Any]]:
        return [draw for peer in sorted(self.draws) for draw in self.draws[peer].drawn]


def make_world(
    protocol: Any,
    plan: Any,
    inputs: Callable[[Peer], Inputs],
    draws: Callable[[Peer], Any],
    neighbours: Callable[[Peer], Any] = lambda _: (),
) -> World:
    users = range(plan.n)
    return World(
        plan,
        {user: protocol.machine(plan, user, neighbours(user), inputs(user)) for user in users},
        {user: draws(user) for user in users},
    )
