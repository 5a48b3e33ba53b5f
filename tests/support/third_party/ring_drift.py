"""`drift.ring`: noised values drift one way round a ring, and user 0 publishes what has come to it.

Each user adds noise to its value once. In each of `[drift] rounds` rounds it sends its state to the next user and adds
what the user before it sent. States are whole steps of a grid, so sums are exact. User 0 ends with its own value and
those of the users before it, with binomial weights, and publishes their weighted mean.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.fields import Positive
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import COMMON, FINISHED, MessageType, Value
from p2pdp.core.readers import Whole
from p2pdp.core.step import NOTHING, Fault, Message, Send, Step
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid, choose_grid
from p2pdp.privacy.contract import Accountant, Answer, number, whole
from p2pdp.protocols.contract import Estimate, PlanDefaults, ProtocolDefaults
from p2pdp.protocols.noise import sigma_of
from p2pdp.protocols.options import Options, Rules
from p2pdp.tasks.inputs import NumberInputs

DRIFT = "drift"


class Drifted(NamedTuple):
    """The fields of the message of a round."""

    round: Positive


@dataclass(frozen=True)
class DriftPart:
    """The section `[drift]` of a spec."""

    rounds: int


@dataclass(frozen=True)
class Drift(PlanDefaults):
    """What is public of a run. The noise's scale is in steps of the grid."""

    n: int
    noise: Mechanism
    grid_exponent: int
    length: int  # rounds
    shape: tuple[int, ...] = ()
    starts: tuple[Any, ...] = ()  # nobody begins for the others: users say one by one that they have finished
    unit: float = 1.0  # contributions are whole steps of the grid

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (self.noise,)

    def exchanges(self, edges: int) -> int:
        return self.n * self.length


class Drifting:
    """One user's part."""

    def __init__(self, plan: Drift, user: int, inputs: NumberInputs) -> None:
        self._plan, self._user, self._inputs = plan, user, inputs
        self._before, self._after = (user - 1) % plan.n, (user + 1) % plan.n
        self._state: Any = None  # a number, or a linear form in an audit: it is added to and never looked at
        self._round = 0  # rounds that are over
        self._came: dict[int, Any] = {}
        self._alone = False  # whether the user before this one is out
        self.finished = False

    def start(self, now_s: float, draws: Draws) -> Step:
        self._state = self._inputs.contribution(0) + draws.noise(self._plan.noise, ())
        return self._goes_on([self._state_of_round()])

    def receive(self, sender: int, message: Message, now_s: float, draws: Draws) -> Step:
        if message.type != DRIFT or sender != self._before:
            return Step(faults=(Fault("unexpected_message", sender),))
        (number,) = message.fields
        if number in self._came:
            return Step(faults=(Fault("unexpected_message", sender),))
        self._came[number] = message.value
        return self._goes_on([])

    def excluded(self, peer: int, now_s: float, draws: Draws) -> Step:
        self._alone = self._alone or peer == self._before
        return self._goes_on([])

    def wake(self, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def _state_of_round(self) -> Send:
        return Send(self._after, Message(DRIFT, (self._round + 1,), self._state))

    def _goes_on(self, sends: list[Send]) -> Step:
        if self._state is None or self.finished:
            return Step(tuple(sends))
        while self._round < self._plan.length and (self._round + 1 in self._came or self._alone):
            self._round += 1
            self._state = self._state + self._came.get(self._round, self._state)  # who is alone counts twice
            if self._round < self._plan.length:
                sends.append(self._state_of_round())
        if self._round == self._plan.length:
            self.finished = True
            sends.append(Send(CURATOR, Message(FINISHED, (), self._state if self._user == 0 else None)))
        return Step(tuple(sends))


class RingDrift(ProtocolDefaults):
    name = "drift.ring"
    tasks: ClassVar = {"mean": ("gaussian",)}
    default_task = "mean"
    options = Options(
        "drift",
        DriftPart,
        {"rounds": Whole(1, 20)},
        rules=Rules(
            possible=(("graph.kind", lambda s: s.graph.kind == "ring", lambda _: "values drift round a ring."),)
        ),
    )
    messages = COMMON.plus(
        MessageType(
            name=DRIFT,
            routes="user -> user",
            meaning="the sender's state in that round",
            fields=Drifted,
            value=Value.ALWAYS,
            step="round",
            droppable=True,
        )
    )

    def plan(self, spec: Any, n: int, dimensions: int, facts: Any = None) -> Drift:
        bounds = Bounds(*spec.data.clip)
        sigma = sigma_of(spec.noise, bounds, dimensions)
        most = 2**spec.options.rounds * (max(abs(bounds.low), abs(bounds.high)) + 64 * sigma)
        grid = choose_grid(sigma, float(bounds.span), most)
        return Drift(n, Mechanism("gaussian", math.ldexp(sigma, -grid.exponent)), grid.exponent, spec.options.rounds)

    def machine(self, plan: Drift, user: int, neighbours: Sequence[int], inputs: Any) -> Drifting:
        return Drifting(plan, user, inputs)

    def inputs(self, plan: Drift, rows: Any) -> tuple[NumberInputs, list[Any]]:
        values = [int(Grid(plan.grid_exponent).to_grid(rows.rows[:1]).item())]
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: Drift, values: list[Any]) -> NumberInputs:
        return NumberInputs(values, 1)

    def check(self, plan: Drift, message: Message) -> str | None:
        if message.type != DRIFT:
            return None
        return None if Drifted(*message.fields).round <= plan.length and type(message.value) is int else "malformed"

    def publish(self, plan: Drift, totals: Sequence[Any]) -> Any:
        return totals[0] if totals else None

    def estimate(self, plan: Drift, published: Any, contributions: int) -> Estimate:
        value = None if published is None else published * 2.0 ** (plan.grid_exponent - plan.length)
        return Estimate(value, None)


PROTOCOL = RingDrift()


def _answer(inputs: Mapping[str, Any]) -> Answer:
    """Whoever sees what is published learns of user i what c_i, its weight, is of the length of all weights."""
    weights = [math.comb(inputs["rounds"], distance) for distance in range(inputs["rounds"] + 1)]
    local = inputs["span"] / inputs["sigma"]
    outputs = {"mu_neighbour": local, "mu_public": local * max(weights) / math.hypot(*weights)}
    return Answer(outputs, True, ("nobody is late or gone", "there are more users than rounds"), "this module")


ACCOUNTANT = Accountant(
    "what the next user and the public learn of a value that drifts round a ring",
    (
        number("span", "width of the bounds of the data", 1e-6, 1e6),
        number("sigma", "standard deviation of the noise of a value", 1e-6, 1e6),
        whole("rounds", "rounds", 1, 60),
    ),
    _answer,
)
