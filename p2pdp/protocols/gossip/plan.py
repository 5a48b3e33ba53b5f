"""The public plan of gossip, and its messages: states along the edges, and decisions not to count one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.fields import Integer, ListOf, Natural, Positive, Row
from p2pdp.core.ids import Peer
from p2pdp.core.messages import COMMON, MessageType, Value
from p2pdp.core.step import Message
from p2pdp.protocols.contract import PlanDefaults, Start
from p2pdp.protocols.records import Records
from p2pdp.topology.weights import edge_weight

_STEPS_BITS_MAX: Final = 500
_STATE_BITS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class AveragingPlan(PlanDefaults):
    """The plan of any gossip. Scales of mechanisms are in grid units; states are in data units.

    `pair_noise` is what neighbours share, if they do; one adds it to its contribution and the other subtracts it.
    `dither` is that of every message if users have noise of their own, in steps of the fine grid on which
    states are kept (`dithering.py`); None if they have none.
    """

    in_rounds: ClassVar[bool] = False
    """Whether all users exchange states round by round; else pairs meet one by one."""
    learns: ClassVar[bool] = False
    """Whether users contribute gradients of a model, again and again."""

    n: int
    weights: str
    degree_max: int
    gap: float
    noise: Mechanism
    message_noise: Mechanism | None
    shape: Shape
    grid_exponent: int
    publish: str  # none, one, all
    patience_s: float
    pair_noise: Mechanism | None = field(default=None, kw_only=True)
    dither: Mechanism | None = field(default=None, kw_only=True)
    fine_exponent: int = field(default=0, kw_only=True)
    records: Records | None = field(default=None, kw_only=True)  # values are sums of rows, one of which may be replaced
    short: bool = field(default=False, kw_only=True)  # whether vectors are sent as steps of the fine grid

    @property
    def number_bytes(self) -> int:
        return 5 if self.short else 8

    @property
    def starts(self) -> tuple[Start, ...]:
        return ()

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        drawn = (self.noise, self.message_noise, self.dither)
        return tuple(mechanism for mechanism in drawn if mechanism is not None and mechanism.name != "none")

    @property
    def other_draws(self) -> frozenset[Mechanism]:
        """Return the mechanisms of noise on messages and dithers."""
        found = frozenset(self.mechanisms) - {self.noise}
        return found | {self.noise} if self.message_noise == self.noise else found

    @property
    def per_row(self) -> float | None:
        """Return by what the mean of the users' values is multiplied; None if rows are not known yet."""
        return 1.0 if self.records is None else self.records.per_row()

    @property
    def step(self) -> float:
        """Return one step of the grid on which noise is drawn, in data units."""
        return math.ldexp(1.0, self.grid_exponent)

    @property
    def unit(self) -> float:
        return self.step

    @property
    def fine(self) -> float:
        """Return one step of the grid on which states are kept, in data units."""
        return math.ldexp(1.0, self.fine_exponent)

    @property
    def state_max(self) -> float:
        """Return a bound on any state, small enough that every whole number of steps is a float."""
        exponent = self.grid_exponent if self.dither is None else min(self.grid_exponent, self.fine_exponent)
        return math.ldexp(1.0, min(exponent + _STEPS_BITS_MAX, _STATE_BITS_MAX))

    def weight(self, degree: int, other_degree: int) -> float:
        return _weight(self.weights, degree, other_degree, self.degree_max)

    def publishes(self, user: Peer) -> bool:
        return self.publish == "all" or (self.publish == "one" and user == 0)


@lru_cache(maxsize=4096)
def _weight(weights: str, degree: int, other_degree: int, degree_max: int) -> float:
    return float(edge_weight(weights, degree, other_degree, degree_max))


@dataclass(frozen=True, slots=True)
class GossipPlan(AveragingPlan):
    """The plan of synchronous gossip."""

    in_rounds: ClassVar[bool] = True

    rounds: int
    gamma: float  # 1 without acceleration
    coin: float | None = None  # the probability that a pair meets in a round, if the graph changes
    block: int = 0  # rounds between two contributions; 0 if there is only one

    @property
    def length(self) -> int:
        return self.rounds

    def begins_block(self, number: int) -> bool:
        return number == 1 or (self.block > 0 and (number - 1) % self.block == 0)

    def gamma_at(self, number: int) -> float:
        """Return the acceleration of a round; it begins anew with each contribution."""
        return 1.0 if self.begins_block(number) else self.gamma

    def exchanges(self, edges: int) -> int:
        return round(2 * edges * self.rounds * (1.0 if self.coin is None else self.coin))


def check_gossip(plan: GossipPlan, message: Message) -> str | None:
    """Return the kind of fault of a message of gossip, or None if it is valid."""
    if message.type == EXCHANGE:
        number, degree = message.fields
        if number > plan.rounds or degree > plan.degree_max:
            return "malformed"
        return None if is_state(message.value, plan) else "bad_value"
    if message.type == SKIPPED:
        return None if Round(*message.fields).round <= plan.rounds else "malformed"
    return check_finished(plan, message)


def check_finished(plan: AveragingPlan, message: Message) -> str | None:
    """Return the kind of fault of a user's final message, or None; other messages are not judged."""
    if message.type != messages.FINISHED or message.value is None:
        return None
    return None if is_state(message.value, plan) else "bad_value"


def is_state(value: Any, plan: AveragingPlan, most: float | None = None) -> bool:
    """Return whether a value is a float, or an array of them, with which all arithmetic stays finite.

    `most` is the plan's `state_max`, where that is at hand.
    """
    if most is None:
        most = plan.state_max
    if plan.shape == ():
        return type(value) is float and -most <= value <= most
    if getattr(value, "shape", None) != plan.shape or value.dtype.kind != "f":
        return False
    return bool(-most <= value.min() and value.max() <= most)  # false if there is a NaN


EXCHANGE: Final = "exchange"
SKIPPED: Final = "skipped"
SETTLED: Final = "settled"
ACTIVATIONS: Final = "activations"


class RoundState(NamedTuple):
    round: Positive
    degree: Positive  # the sender's degree in that round


class Round(NamedTuple):
    round: Positive


class Activation(NamedTuple):
    activation: Positive


class Activations(NamedTuple):
    part: Natural
    parts: Natural
    pairs: Annotated[list[list[int]], ListOf(Row(("activation", "other"), Integer(0)))]


_STATE: Final = "the sender's state"

ROUNDS: Final = COMMON.plus(
    MessageType(
        name=EXCHANGE,
        routes="user -> user",
        meaning=_STATE,
        fields=RoundState,
        value=Value.ALWAYS,
        step="round",
        droppable=True,
    ),
    MessageType(
        name=SKIPPED,
        routes="user -> user",
        meaning="the sender, who decides, did not count our edge in that round",
        fields=Round,
        step="round",
        droppable=True,
    ),
    MessageType(
        name=SETTLED,
        routes="user -> user",
        meaning="all that the sender decides about our edge is decided",
        droppable=True,
    ),
)

PAIRS: Final = COMMON.plus(
    MessageType(
        name=ACTIVATIONS,
        routes="bootstrap -> user",
        meaning="when the receiver's edges are active, in parts that fit into frames",
        fields=Activations,
    ),
    MessageType(
        name=EXCHANGE,
        routes="user -> user",
        meaning=_STATE,
        fields=Activation,
        value=Value.ALWAYS,
        step="activation",
        droppable=True,
    ),
)
