"""The messages that users of network shuffling pass on: sealed reports, cover for them, and marks that end rounds."""

from __future__ import annotations

from typing import Final, NamedTuple

from p2pdp.core.fields import Natural, Positive
from p2pdp.core.messages import COMMON, MessageType, Value

RELAY: Final = "relay"
MARK: Final = "mark"
COVER: Final = "cover"


class Hop(NamedTuple):
    came_by: Natural  # the number of the hop before
    hop: Natural
    round: Positive


class Round(NamedTuple):
    round: Positive


MESSAGES: Final = COMMON.plus(
    MessageType(
        name=RELAY,
        routes="user -> user",
        meaning="a sealed report on its way",
        fields=Hop,
        value=Value.ALWAYS,
        item="hop",
        step="round",
        before="came_by",
        custody=True,
    ),
    MessageType(
        name=COVER,
        routes="user -> user",
        meaning="no report, and in all as long as one; in place of hops it has a number that no hop has",
        fields=Hop,
        value=Value.FILLER,
        droppable=True,
    ),
    MessageType(
        name=MARK,
        routes="user -> user",
        meaning="the sender has sent all that it had in that round",
        fields=Round,
        step="round",
        droppable=True,
    ),
)
