"""The public plan of network shuffling, and its messages: sealed reports, cover for them, and marks that end rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from p2pdp.core.draws import NO_NOISE, UNIFORM, Draws, Mechanism
from p2pdp.core.fields import Natural, Positive
from p2pdp.core.messages import COMMON, FINISHED, REPORT, MessageType, Value
from p2pdp.core.rows import Rows
from p2pdp.core.step import Message
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.protocols.contract import PlanDefaults, Start

NAMES: Final = 1 << 56  # names of reports are drawn below this, so that no name reveals the owner
COVER_HOP: Final = (1 << 32) - 1  # the hop number of cover
_HOP_LEAST: Final = 1 << 16  # all numbers of hops are of one length, also as they are packed
SEED: Final = UNIFORM  # the context string of a report's seal
SEED_SHAPE: Final = (4,)
STAY_OPTIONS: Final = 1 << 32


class Reports(Protocol):
    """A user's inputs; a sealed report is bytes in a run and a symbol in the auditor."""

    def sealed(self, name: int, randomness: Any, seed: Any, place: int = 0) -> Any: ...

    def sealed_dummy(self, name: int, randomness: Any, seed: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class ShufflePlan(PlanDefaults):
    """The plan. `sealed_bytes` is the length of a report as relays see it; `slots` is the cover per edge and round."""

    n: int
    rounds: int
    stay: float
    single: bool
    slots: int | None
    randomizer: Randomizer = field(compare=False)  # it follows from the spec
    sealed_bytes: int
    patience_s: float
    overlap: float  # lower bound for the laws of any two users' reports after the last round
    dummies: tuple[float, float]  # `single` only: expected number of users who hold nothing, and its variance
    rows: Rows | None = None  # how many reports each user sends, one for each of its rows; one for each user if None

    @property
    def reports(self) -> int:
        """Return how many reports all users send together."""
        return self.n if self.rows is None else sum(self.rows)

    def reports_of(self, user: int) -> int:
        return 1 if self.rows is None else self.rows[user]

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def starts(self) -> tuple[Start, ...]:
        return ()

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (*self.randomizer.mechanisms, SEED)

    @property
    def protection(self) -> tuple[Mechanism, ...]:
        return tuple(self.randomizer.mechanisms)

    @property
    def noise(self) -> Mechanism:
        """Return the first mechanism that a report draws from."""
        return self.randomizer.mechanisms[0] if self.randomizer.mechanisms else NO_NOISE

    @property
    def grid_exponent(self) -> int:
        """Return the exponent of the grid of a report's numbers."""
        return self.randomizer.exponent

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the estimate: one number, or several."""
        randomizer = self.randomizer
        return (randomizer.outputs,) if randomizer.counted or randomizer.outputs > 1 else ()

    @property
    def length(self) -> int:
        return self.rounds

    @property
    def stay_below(self) -> int:
        """Return the bound on a choice among `STAY_OPTIONS` below which a report stays where it is."""
        return round(self.stay * STAY_OPTIONS)

    def marks(self, edges: int) -> int:
        """Return the number of marks: one per round in each direction of each edge."""
        return 2 * edges * self.rounds

    def exchanges(self, edges: int) -> int:
        """Estimate the number of messages: reports or cover, and the marks."""
        marks = self.marks(edges)
        moved = round(self.reports * self.rounds * (1.0 - self.stay)) if self.slots is None else marks * self.slots
        return marks + moved


def draw_hop(draws: Draws) -> int:
    """Draw a number for one hop of one report."""
    return _HOP_LEAST + draws.choice(COVER_HOP - _HOP_LEAST)


def check_shuffle(plan: ShufflePlan, message: Message) -> str | None:
    """Return the kind of fault of a message of the wrong form, or None if it is valid."""
    kind, fields, value = message
    if kind == COVER and plan.slots is None:
        return "malformed"
    if kind in (RELAY, REPORT, COVER):
        last = plan.rounds + 1
        *hops, step = fields
        known = all(hop == COVER_HOP if kind == COVER else _HOP_LEAST <= hop < COVER_HOP for hop in hops)
        if not known or (step != last if kind == REPORT else step >= last):
            return "malformed"
        return None if type(value) is bytes and len(value) == plan.sealed_bytes else "bad_value"
    if kind == MARK:
        return None if Round(*fields).round <= plan.rounds else "malformed"
    return "malformed" if kind == FINISHED and value is not None else None


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
