"""The messages that users of gossip exchange: states along the edges, and who decided not to count one."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from p2pdp.core.fields import ListOf, Natural, Positive, Row, Whole
from p2pdp.core.messages import COMMON, MessageType, Value

EXCHANGE: Final = "exchange"
SKIPPED: Final = "skipped"
SETTLED: Final = "settled"
ACTIVATIONS: Final = "activations"


class RoundState(NamedTuple):
    round: Positive
    degree: Positive  # of the sender in that round


class Round(NamedTuple):
    round: Positive


class Activation(NamedTuple):
    activation: Positive


class Activations(NamedTuple):
    part: Natural
    parts: Natural
    pairs: Annotated[list[list[int]], ListOf(Row(("activation", "other"), Whole(0)))]


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
