"""A disclosure is a value, and a claim names its terms; a refusal is a normal answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """How a claim was worked out; published formulas have `published:` and a name instead."""

    EXACT = "exact"
    HIDDEN_PATH = "hidden-path"
    SHUFFLE = "shuffle"
    ITERATION = "iteration"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Claim:
    """How much one kind of observer could have learned about one user's whole input.

    `epsilon_max` and `mu_max` are upper ends: every rounding on the way to them goes the
    pessimistic way. `bound` is False for published formulas that prove nothing.
    """

    observer: str
    unit: str
    relation: str
    delta: float
    method: str
    conditioning: str
    epsilon_max: float | None
    epsilon_mean: float | None
    mu_max: float | None
    mu_mean: float | None
    worst_pair: tuple[int, int | str | tuple[int, ...]] | None
    bound: bool
    violated_pairs: int | None
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    observer: str
    method: str
    reason: str
