"""The public plan of pairwise sums, and their messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from p2pdp.core.draws import UNIFORM, Mechanism, Shape
from p2pdp.core.fields import Natural
from p2pdp.core.ids import Peer
from p2pdp.core.messages import COMMON, MessageType, Users, Value
from p2pdp.core.step import Message
from p2pdp.protocols.contract import Neighbours, PlanDefaults, Start
from p2pdp.protocols.decision import DECISION
from p2pdp.protocols.pairwise.sharing import is_key, is_part
from p2pdp.protocols.records import Records

PAIR_NUMBER: Final = 0  # of the one draw that two neighbours share
_INT_END: Final = 2**63


@dataclass(frozen=True, slots=True)
class PairwisePlan(PlanDefaults):
    """The plan. Scales of mechanisms are in grid units, as contributions are; `hidden` users hide each other."""

    n: int
    noise: Mechanism
    mask: Mechanism
    settles: bool
    shape: Shape
    grid_exponent: int
    survivors_min: int
    colluders_max: int
    hidden: int
    together: int  # how many survivors hide each user at least, or there is no decision
    task: str
    records: Records | None = None  # contributions are sums of rows, one of which may be replaced

    @property
    def starts(self) -> tuple[Start, ...]:
        return ()

    @property
    def needed(self) -> int:
        return self.survivors_min

    @property
    def why_needed(self) -> str:
        return f"the result needs {self.survivors_min} survivors, and {self.together} who hide each other"

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        own = () if self.noise.name == "none" else (self.noise,)
        return (*own, UNIFORM) if self.settles or self.mask == UNIFORM else own

    @property
    def other_draws(self) -> frozenset[Mechanism]:
        return frozenset()  # seeds are not added to anything

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def length(self) -> int:
        return 1

    @property
    def counts(self) -> bool:
        """Return whether values are categories, which are counted."""
        return self.task == "histogram"

    @property
    def sensitivity(self) -> float | None:
        """Return how far a category moves two counts, in grid units."""
        return math.ldexp(math.nextafter(math.sqrt(2.0), 2.0), -self.grid_exponent) if self.counts else None

    def exchanges(self, edges: int) -> int:
        return 2 * edges if self.settles else 0

    def threshold(self, degree: int) -> int:
        """Return how many parts give back the key of a user with this many neighbours."""
        return max(min(2, degree), min(self.colluders_max + 1, degree // 2 + 1))

    def hides(self, live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        """Return whether each of these users is connected, over these users, with enough others."""
        left = set(live)
        while left:
            pending, size = [left.pop()], 1
            while pending:
                near = left.intersection(neighbours(pending.pop()))
                left -= near
                size += len(near)
                pending += near
            if size < self.together:
                return False
        return True

    def recoverable(self, survivors: AbstractSet[Peer], live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        """Return whether each survivor is there, or enough of its neighbours to take off its mask."""
        if not self.settles:
            return True
        present = survivors & live
        for user in survivors - live:
            around = neighbours(user)
            parts = sum(peer in present for peer in around)
            if parts < self.threshold(len(around)):
                return False
        return True


SHARE: Final = "share"
MASKED: Final = "masked"
PAIR_KEY: Final = "pair_key"
SEEDS: Final = "seeds"


class Around(NamedTuple):
    neighbours: Users


class Gone(NamedTuple):
    peer: Natural


class Owners(NamedTuple):
    users: Users


MESSAGES: Final = COMMON.plus(
    *DECISION,
    MessageType(
        name=SHARE,
        routes="user -> user",
        meaning="the receiver's part of the key of the sender's own mask",
        value=Value.ALWAYS,
    ),
    MessageType(
        name=MASKED,
        routes="user -> curator",
        meaning="the sender's noised value behind its own mask and those that it shares with these neighbours",
        fields=Around,
        value=Value.ALWAYS,
    ),
    MessageType(
        name=PAIR_KEY,
        routes="user -> curator",
        meaning="the key of the mask that the sender shares with a neighbour who was excluded before the decision",
        fields=Gone,
        value=Value.ALWAYS,
    ),
    MessageType(
        name=SEEDS,
        routes="user -> curator",
        meaning="the key of the sender's own mask, then its parts of those of its neighbours among the survivors",
        fields=Owners,
        value=Value.ALWAYS,
    ),
)


def check_pairwise(plan: PairwisePlan, message: Message) -> str | None:
    """Return the kind of fault of a message, or None if it is valid."""
    kind, value = message.type, message.value
    if kind == SHARE:
        return None if plan.settles and is_part(value) else "bad_value"
    if kind == MASKED:
        if not _are_users(Around(*message.fields).neighbours, plan.n):
            return "malformed"
        return None if _is_number(value, plan.shape) else "bad_value"
    if kind == PAIR_KEY:
        if Gone(*message.fields).peer >= plan.n:
            return "malformed"
        return None if plan.settles and is_key(value) else "bad_value"
    if kind == SEEDS:
        owners = Owners(*message.fields).users
        if not plan.settles or not _are_users(owners[1:], plan.n):
            return "malformed"
        return None if _are_keys(value, len(owners)) else "bad_value"
    return None


def _are_users(users: Sequence[int], n: int) -> bool:
    """Return whether these are users in ascending order."""
    return all(one < other for one, other in pairwise([*users, n]))


def _are_keys(value: Any, count: int) -> bool:
    if type(value) is not list or len(value) != count or count == 0:
        return False
    return is_key(value[0]) and all(map(is_part, value[1:]))


def _is_number(value: Any, shape: Shape) -> bool:
    if shape == ():
        return type(value) is int and -_INT_END <= value < _INT_END
    return getattr(value, "shape", None) == shape and value.dtype.kind == "i"
