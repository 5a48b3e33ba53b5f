"""Everything that the page is made of; `runs/audit.py` gathers it from a folder and an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from p2pdp.auditor.headline import Bound, Verdict, bounds_of, verdict_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Observer, Refusal

Number = float | list[float] | None


@dataclass(frozen=True)
class Outcome:
    """The part of `result.json` that the page shows."""

    estimate: Number
    standard_error: Number
    truth: Number
    error: Number
    local: Number  # standard error of the same task under local DP, at the same privacy
    central: Number  # … with a trusted curator
    seeded: bool
    seed: int | None
    started: str | None
    seconds: float
    messages: int | None  # None where users are on other machines
    bytes: int | None
    missing: Sequence[int]
    faults: Mapping[str, int]
    score: str = ""  # what models are measured by; empty where none was learned
    scores: Mapping[str, Sequence[float | None]] = field(default_factory=dict)  # learned rows, test rows
    traffic: Mapping[str, float] = field(default_factory=dict)  # of network shuffling
    users_mean: Number = None  # of users' own results, where nothing is published
    users_furthest: Number = None


@dataclass(frozen=True)
class Curve:
    """Epsilon of one claim at many deltas; a single point where no more than that is known."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class PageFacts:
    """Matrices are indexed [user, observer], with NaN where there is no pair or no answer.

    `conditioning` is that of the matrix `epsilon`; `mu` is there only where it belongs to the same conditioning.
    `unread` and `no_distances` say why a part could not be made. `leak` and `printed`, which only gossip has, are in
    units of what a user's own noised value tells: as computed, and as a paper prints it. `variation` is the total
    variation that belongs to `epsilon`, where a hidden path has it.
    """

    run_id: str
    protocol: str
    nodes: int
    delta: float
    verified: str
    claims: Sequence[Claim]
    refusals: Sequence[Refusal]
    conditioning: str
    epsilon: Floats | None
    mu: Floats | None
    coalition: Floats | None
    distances: Floats | None
    no_distances: str
    curves: Sequence[Curve]
    outcome: Outcome | None
    unread: str
    setting: Mapping[str, str]  # graph, noise and the like, in a few words each
    spec_text: str = field(repr=False)
    leak: Floats | None = None
    printed: Floats | None = None
    variation: Floats | None = None

    @property
    def colluders(self) -> tuple[int, ...]:
        for claim in self.claims:
            if claim.observer == Observer.COALITION and claim.worst_pair and isinstance(claim.worst_pair[1], tuple):
                return claim.worst_pair[1]
        return ()

    @property
    def bounds(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.bound]

    @property
    def observed(self) -> list[Bound]:
        """Return the best bound of each observer."""
        return bounds_of(self.claims, self.refusals, self.nodes, self.delta)

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.claims, self.refusals, self.nodes, self.delta)

    @property
    def published(self) -> list[Claim]:
        """Return the claims by printed formulas, which prove nothing."""
        return [claim for claim in self.claims if not claim.bound]


Document = dict[str, Any]


def outcome_of(document: Document) -> Outcome:
    """Read `result.json`; raise ValueError where it is not one."""
    try:
        baselines = document["baselines"]
        return Outcome(
            estimate=_numbers(document["estimate"]),
            standard_error=_numbers(document["standard_error"]),
            truth=_numbers(document["truth"]),
            error=_numbers(document["error"]),
            local=_numbers(baselines["local"]["standard_error"]),
            central=_numbers(baselines["central"]["standard_error"]),
            seeded=bool(document["seeded"]),
            seed=_count(document["seed"]),
            started=None if document["started"] is None else str(document["started"]),
            seconds=float(document["seconds"]),
            messages=_count(document["messages"]),
            bytes=_count(document["bytes"]),
            missing=[int(user) for user in document["missing"]],
            faults={str(kind): int(count) for kind, count in document["faults"].items()},
            traffic={str(name): float(value) for name, value in (document.get("traffic") or {}).items()},
            **_scores(document),
            **_users(document),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"it is not a result ({type(error).__name__})") from None


def _scores(document: Document) -> dict[str, Any]:
    """Return the scores of this run's model and of its baselines; losses where the task has no score."""
    told = document.get("scores")
    if told is None:
        return {}
    what = "score" if told["score"] is not None else "loss"
    models = {"run": told, **document["baselines"]}
    scores = {str(name): [_score(one.get(key)) for key in (what, f"test_{what}")] for name, one in models.items()}
    return {"score": str(told["score_name"]) if what == "score" else what, "scores": scores}


def _users(document: Document) -> dict[str, Any]:
    if document["estimate"] is not None:
        return {}
    from p2pdp.report.result import of_users

    found = of_users(document["outputs"])
    return {} if found is None else {"users_mean": _numbers(found.mean), "users_furthest": _numbers(found.furthest)}


def _score(value: Any) -> float | None:
    number = _numbers(value)
    if isinstance(number, list):
        raise TypeError("a score is one number")
    return number


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _numbers(value: Any) -> Number:
    if value is None:
        return None
    numbers = [float(part) for part in value] if isinstance(value, list) else float(value)
    if any(math.isnan(number) for number in (numbers if isinstance(numbers, list) else [numbers])):
        raise ValueError("not a number")
    return numbers
