"""Everything that the page is made of; `runs/audit.py` gathers it from a folder and an audit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from p2pdp.auditor.headline import Bound, Verdict, bounds_of, verdict_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.report.page.words import number

if TYPE_CHECKING:
    from p2pdp.auditor.pairs import PairTotals

Number = float | list[float] | None
AUDITOR: Final = "auditor"  # the readers of an edition
PARTICIPANTS: Final = "participants"
OWNER: Final = "owner"  # of one node


@dataclass(frozen=True)
class LearningCurves:
    """Loss and score on public rows after so many steps, of what learned by name; None where there is none."""

    rows: int
    step: str
    at: Sequence[int]
    score_name: str | None
    lines: Mapping[str, Mapping[str, Sequence[float | None]]]


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
    scores: Mapping[str, Sequence[float | None]] = field(
        default_factory=dict
    )  # by what learned, on each of `scored_on`
    scored_on: Sequence[str] = ("on the rows that were learned from", "on test rows")
    over_trials: Mapping[str, Sequence[str]] = field(default_factory=dict)  # likewise, in words; empty where unknown
    curves: LearningCurves | None = None
    traffic: Mapping[str, float] = field(default_factory=dict)  # of network shuffling
    users_mean: Number = None  # of users' own results, where nothing is published
    users_furthest: Number = None


@dataclass(frozen=True)
class Curve:
    """Epsilon of one claim at many deltas; a single point where no more than that is known."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Sharing:
    """The pairs of users who draw together, and which of these draws the curator and the colluders know.

    `groups` are the honest users whom draws that are not known connect, largest group first; users who are `away` are
    not in the result.
    """

    nodes: int
    edges: Sequence[tuple[int, int]]
    known: frozenset[tuple[int, int]]
    colluders: frozenset[int]
    away: frozenset[int]
    groups: Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Proof:
    """The ties of a page to a run: digests, keys and a signature in hexadecimal, as `p2pdp verify` prints them.

    `ledgers` are the ends of the hash chains by peer, and `together` is the digest of them; an edition for readers who
    may not have them leaves both out. `audit` is the command that makes the claims again.
    """

    version: str  # of the program that made the page
    spec: str
    roster: str
    bootstrap: str
    signature: str
    ledgers: Mapping[str, str] = field(default_factory=dict)
    together: str | None = None
    audit: str = "p2pdp audit FILE"


@dataclass(frozen=True)
class Prospect:
    """The cost of a run, a priori: the headline's epsilon, the worst observer's, and the standard error."""

    noise: str
    epsilon: float
    worst: float
    standard_error: Number


@dataclass(frozen=True)
class Advice:
    """The same run with its noise as it is and with twice as much; without `prospects`, `reason` says why not.

    `line` is the option to copy; "" where there is no noise that can be doubled.
    """

    line: str
    prospects: Sequence[Prospect] = ()
    reason: str = ""


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
    totals: PairTotals | None = None  # in place of matrices, where these are too large
    sharing: Sharing | None = None  # where users draw noise together
    reader: str = AUDITOR
    started: str | None = None  # where there is no outcome that says so
    budget: str | None = None  # the state of the owner's own, where the owner is the reader
    about: Mapping[str, str] = field(default_factory=dict)  # who ran what on which data, and never a path
    proof: Proof | None = None
    advice: Advice | None = None
    glossary: Mapping[str, str] = field(default_factory=dict)  # of the guide; the page shows the terms that it uses

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
    on = {words: f"{part}{what}" for part, words in _ROWS.items() if part != "public_" or "public_loss" in told}
    scores = {str(name): [_score(one.get(key)) for key in on.values()] for name, one in models.items()}
    trials = {str(name): [_over_trials(one, key) for key in on.values()] for name, one in models.items()}
    return {
        "score": str(told["score_name"]) if what == "score" else what,
        "scores": scores,
        "scored_on": tuple(on),
        "over_trials": trials,
        "curves": None if document.get("curves") is None else curves_of(document["curves"]),
    }


_ROWS: Final = {"": "on the rows that were learned from", "test_": "on test rows", "public_": "on public rows"}


def _over_trials(told: Document, key: str) -> str:
    over = (told.get("over_trials") or {}).get(key)
    if over is None or over["standard_error"] is None:
        return ""
    mean, error = number(float(over["mean"])), number(float(over["standard_error"]))
    return f"{mean} ± {error} over {int(told['over_trials']['trials'])} trials"


def curves_of(document: Document) -> LearningCurves:
    """Read the curves in a result; raise KeyError, TypeError or ValueError where they are none."""
    at = tuple(int(place) for place in document["at"])
    lines = {
        str(name): {kind: tuple(_score(value) for value in one[kind]) for kind in ("loss", "score")}
        for name, one in document["of"].items()
    }
    if any(len(line) != len(at) for one in lines.values() for line in one.values()):
        raise ValueError("a curve has another length than its places")
    name = document["score_name"]
    return LearningCurves(int(document["rows"]), str(document["step"]), at, None if name is None else str(name), lines)


def _users(document: Document) -> dict[str, Any]:
    if document["estimate"] is not None:
        return {}
    from p2pdp.report.own_results import of_users

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
    numbers = [float(part) for part in value] if isinstance(value, list | array) else float(value)
    if any(math.isnan(number) for number in (numbers if isinstance(numbers, list) else [numbers])):
        raise ValueError("not a number")
    return numbers
