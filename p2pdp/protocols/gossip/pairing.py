"""Randomized gossip: one edge at a time, its two ends take the mean of their states.

[CEBM22, Algorithm 2], with the activations drawn in advance by bootstrap from the edges' intensities. Bootstrap sends
each user those that concern it, with numbers that count all activations of the run. A user takes its own in their
order: it sends its state for the first one left and waits for the neighbour's of the same number. The activation of
the lowest number that is left anywhere waits for nobody, so there is no circle of waiting, and no vote.

An activation with an excluded user is void. Noise that a user shares with a neighbour (`sending.PairNoise`) is taken
out of its state if the neighbour is excluded before the two met; a state that is sent already counts at both ends of
its activation as it was. Noise on messages is as `dithering.py` says.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Send, Step
from p2pdp.protocols.gossip.plan import (
    ACTIVATIONS,
    EXCHANGE,
    Activation,
    Activations,
    AveragingPlan,
    check_finished,
    is_state,
)
from p2pdp.protocols.gossip.sending import PairNoise, Sending
from p2pdp.tasks.inputs import Inputs

PART_MAX: Final = 2000  # activations in one message


class Phase(Enum):
    WAITING = "the run has not begun"
    TAKING = "it takes activations in order, and more are still to be announced"
    COMPLETING = "it takes the last of its activations"
    ENDED = "its result is handed in"


class Change(Enum):
    BEGUN = "bootstrap said go"
    ALL_ANNOUNCED = "the last part of the activations came"
    ALL_TAKEN = "no activation is left"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.WAITING, Change.BEGUN): Phase.TAKING,
    (Phase.TAKING, Change.ALL_ANNOUNCED): Phase.COMPLETING,
    (Phase.COMPLETING, Change.ALL_TAKEN): Phase.ENDED,
}


@dataclass(frozen=True, slots=True)
class PairPlan(AveragingPlan):
    """The plan of randomized gossip."""

    activations: int

    @property
    def length(self) -> int:
        return self.activations

    def exchanges(self, edges: int) -> int:
        return 2 * self.activations


class Pairing:
    """The machine of one user."""

    def __init__(self, plan: PairPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> None:
        self._plan = plan
        self._user = user
        self._neighbours = frozenset(neighbours)
        self._inputs = inputs
        self._state: Any = None
        self._sending = Sending(plan)
        self._pairs = PairNoise(plan, user)
        self._left_over: list[Any] = []  # to be taken out of the state when the present activation is over
        self._parts = 0
        self._mine: deque[tuple[int, Peer]] = deque()
        self._known: dict[int, Peer] = {}
        self._came: dict[int, tuple[Peer, Any]] = {}
        self._sent = 0  # the number of the last activation for which our state was sent
        self._out: set[Peer] = set()
        self._phase = Phase.WAITING

    @property
    def waits_for(self) -> set[Peer]:
        return {self._mine[0][1]} - self._out if self._mine else set()

    @property
    def finished(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Pairing(user={self._user})"

    def start(self, now_s: float, draws: Draws) -> Step:
        if self._phase is not Phase.WAITING:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.BEGUN)
        plan = self._plan
        self._state = self._inputs.contribution(0)
        if plan.noise.name != "none":
            self._state = self._state + draws.noise(plan.noise, plan.shape) * plan.step
        present = sorted(self._neighbours - self._out)
        self._state = self._sending.settled(self._pairs.added_to(self._state, present, 0, draws))
        return self._advance(draws)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender == self._user and message.type == messages.FINAL:
            return NOTHING
        if sender == BOOTSTRAP and message.type == ACTIVATIONS:
            belongs = self._told(message)
        else:
            belongs = message.type == EXCHANGE and sender in self._neighbours and self._take(sender, message)
        return self._advance(draws) if belongs else Step(faults=(Fault("unexpected_message", sender),))

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._advance(draws)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        self._out.add(peer)
        left_over = self._pairs.left_over(peer)
        if left_over is not None:
            self._left_over.append(left_over)
        return self._advance(draws)

    def _told(self, message: Message) -> bool:
        part, parts, pairs = message.fields
        if part != self._parts or self._phase is not Phase.TAKING:  # links are in order: the go comes before
            return False
        self._parts += 1
        if self._parts == parts:
            self._phase = after(TRANSITIONS, self._phase, Change.ALL_ANNOUNCED)
        for number, peer in pairs:
            self._mine.append((number, peer))
            self._known[number] = peer
        return True

    def _take(self, sender: Peer, message: Message) -> bool:
        """Keep a state, which may come before bootstrap's message about the activation."""
        (number,) = message.fields
        announced = self._phase in (Phase.COMPLETING, Phase.ENDED)
        if sender in self._out or number in self._came or (announced and self._known.get(number) != sender):
            return False
        self._came[number] = (sender, message.value)
        return True

    def _advance(self, draws: Draws) -> Step:
        if self._phase in (Phase.WAITING, Phase.ENDED):
            return NOTHING
        sends: list[Send] = []
        while self._mine:
            number, peer = self._mine[0]
            if peer not in self._out:
                if self._sent < number:
                    self._sent = number
                    self._take_out()
                    sends.append(self._exchange(number, peer, draws))
                if number not in self._came:
                    break
                sender, value = self._came.pop(number)
                if sender == peer:  # otherwise the sender claimed an activation of others
                    self._state = self._sending.settled((self._state + value) * 0.5)
                    self._pairs.counted(peer)
            self._mine.popleft()
            self._known.pop(number)
        if self._phase is Phase.COMPLETING and not self._mine:
            self._phase = after(TRANSITIONS, self._phase, Change.ALL_TAKEN)
            self._take_out()
            sends += self._end(draws)
        return Step(tuple(sends))

    def _take_out(self) -> None:
        while self._left_over:
            self._state = self._sending.settled(self._state - self._left_over.pop())

    def _exchange(self, number: int, peer: Peer, draws: Draws) -> Send:
        (value,) = self._sending.values(self._state, 1, draws)
        return Send(peer, Message(EXCHANGE, (number,), value))

    def _end(self, draws: Draws) -> tuple[Send, ...]:
        plan = self._plan
        value = self._sending.dithered(self._state, draws) if plan.publishes(self._user) else None
        return (
            Send(self._user, Message(messages.FINAL, (plan.activations,), self._state)),
            Send(CURATOR, Message(messages.FINISHED, (), value)),
        )


def check_pairing(plan: PairPlan, message: Message) -> str | None:
    """Return the kind of fault of a message of randomized gossip, or None if it is valid."""
    if message.type == EXCHANGE:
        if Activation(*message.fields).activation > plan.activations:
            return "malformed"
        return None if is_state(message.value, plan) else "bad_value"
    if message.type == ACTIVATIONS:
        pairs = Activations(*message.fields).pairs
        return None if all(1 <= number <= plan.activations and peer < plan.n for number, peer in pairs) else "malformed"
    return check_finished(plan, message)


def draw_activations(
    edges: Sequence[tuple[Peer, Peer]], intensities: Sequence[Fraction], count: int, draws: Draws
) -> list[tuple[Peer, Peer]]:
    """Draw `count` edges, each with a probability in proportion to its intensity."""
    common = math.lcm(*(intensity.denominator for intensity in intensities))
    ends = list(accumulate(int(intensity * common) for intensity in intensities))
    return [edges[bisect_right(ends, draws.choice(ends[-1]))] for _ in range(count)]


def activation_messages(activations: Sequence[tuple[Peer, Peer]], n: int) -> list[list[Message]]:
    """Return each user's messages: its activations, numbered from 1 on, in parts that fit into frames."""
    mine: list[list[list[int]]] = [[] for _ in range(n)]
    for number, (one, other) in enumerate(activations, start=1):
        mine[one].append([number, other])
        mine[other].append([number, one])
    messages = []
    for pairs in mine:
        parts = [pairs[at : at + PART_MAX] for at in range(0, len(pairs), PART_MAX)] or [[]]
        messages.append([Message(ACTIVATIONS, (at, len(parts), part)) for at, part in enumerate(parts)])
    return messages
