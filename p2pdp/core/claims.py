"""A disclosure is a value, and a claim names its terms; a refusal is a normal answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Observer(StrEnum):
    """The observer whose view a claim is about; reports list them in this order."""

    NODE = "node"
    COALITION = "coalition"
    CURATOR = "curator"
    PUBLIC = "public"
    NETWORK = "network"
    BROKER = "broker"


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
    """A statement of how much one kind of observer could have learned about one user's whole input.

    `epsilon_max` and `mu_max` are upper ends: every rounding on the way to them goes the
    pessimistic way. `bound` is False for published formulas that prove nothing.
    """

    observer: Observer
    unit: str
    relation: str
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


@dataclass(frozen=True, slots=True)
class Refusal:
    observer: Observer
    method: str
    reason: str
