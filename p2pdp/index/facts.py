"""The rows that the database holds of a run, which follow from the run's folder, and from nothing else.

Of participants there are fingerprints of identities and how far they came; of the life cycle what bootstrap's ledger
tells. There are no values but those that the spec publishes, no routes and no keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Participant:
    """`state`: enrolled, ready, excluded, finished, or stayed_away."""

    token: int | None
    user: int | None
    identity: str
    state: str


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """`user` is a number, or `curator` as -2; None where the event is nobody's."""

    at_s: float
    event: str
    user: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    observer: str
    method: str
    conditioning: str
    delta: float
    epsilon_max: float | None
    mu_max: float | None
    bound: bool
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunFacts:
    run_id: str
    folder: str
    protocol: str
    transport: str
    nodes: int
    n: int | None
    state: str
    started: str | None
    seconds: float | None
    participants: list[Participant] = field(default_factory=list)
    events: list[LifeEvent] = field(default_factory=list)
    result: dict[str, Any] | None = None
    claims: list[ClaimRow] = field(default_factory=list)
    headline: dict[str, Any] | None = None  # of audit.json
    worst: dict[str, Any] | None = None

    @property
    def excluded(self) -> int:
        return sum(one.state == "excluded" for one in self.participants)

    @property
    def epsilon_max(self) -> float | None:
        """Return the headline's epsilon, for queries; None where nothing was audited."""
        if self.headline is None:
            return None
        return math.inf if self.headline["epsilon"] == "inf" else float(self.headline["epsilon"])
