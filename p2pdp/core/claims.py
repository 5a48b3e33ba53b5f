"""A disclosure is a value, and a claim names its terms; a refusal is a normal answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Unit(StrEnum):
    """The unit of protection: all that one user's node holds, or one row of it."""

    USER = "user"
    RECORD = "record"


class Relation(StrEnum):
    """The relation of two data sets that a claim compares: one unit is replaced by another, or contributes nothing."""

    REPLACE = "replace"
    ZERO_OUT = "zero-out"


@dataclass(frozen=True, slots=True)
class Protected:
    """A unit, and how it may differ: all that a claim says is about this."""

    unit: Unit
    relation: Relation = Relation.REPLACE


class Observer(StrEnum):
    """The observer whose view a claim is about; reports list them in this order."""

    NODE = "node"
    COALITION = "coalition"
    CURATOR = "curator"
    POOLED = "curator+coalition"
    PUBLIC = "public"
    NETWORK = "network"
    BROKER = "broker"


NOT_TRUSTED: Final = (Observer.NODE, Observer.CURATOR, Observer.PUBLIC)
"""Those who need not be trusted for a run to be of use: the headline is about them."""


class Conditioning(StrEnum):
    """The assumed knowledge of the observer about the route, the schedule and the graph."""

    A_PRIORI = "a-priori"
    VIEW = "view"
    PUBLIC = "public"


class Method(StrEnum):
    """The method by which a claim was computed; published formulas have `published:` and a name instead."""

    EXACT = "exact"
    HIDDEN_PATH = "hidden-path"
    SHUFFLE = "shuffle"
    ITERATION = "iteration"
    LOCAL = "local"


Name = int | Observer | tuple[int, ...]  # one observer: a user, a role, or the users who pool their views


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of how much one kind of observer could have learned about a user's whole input, or one row.

    `epsilon_max` and `mu_max` are upper ends: every rounding on the way to them goes the
    pessimistic way. `bound` is False for published formulas that prove nothing.
    """

    observer: Observer
    unit: Unit
    relation: Relation
    delta: float
    method: str
    conditioning: Conditioning
    epsilon_max: float | None
    epsilon_mean: float | None
    mu_max: float | None
    mu_mean: float | None
    worst_pair: tuple[int, Name] | None
    bound: bool
    violated_pairs: int | None
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        epsilon = "unknown" if self.epsilon_max is None else f"{self.epsilon_max:.4g}"
        kind = "" if self.bound else ", no bound"
        how = f"{self.method}, {self.conditioning}{kind}"
        return f"Claim({self.observer}: epsilon {epsilon} at delta {self.delta:g}, {how})"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why nothing is claimed about a kind of observer, or about one user as an observer."""

    observer: Observer
    method: str
    reason: str
    user: int | None = None  # whom alone the claims about its kind leave out, since what it saw is not known
