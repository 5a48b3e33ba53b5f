"""The result of a run as in `result.json`, with what the same privacy would have cost otherwise.

Sums, histograms, averages and reports are compared with local and central baselines by standard errors alone; what
learns also by the noise that each alternative needs, and by scores where the launcher has the data. The protocol's
analysis says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from p2pdp.assembly.outcome import Number, Outcome, baselines, error_of, estimate_of, truth_of
from p2pdp.auditor.headline import Verdict
from p2pdp.core.ids import Peer
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.documents import plain, verdict_document


@dataclass(frozen=True)
class Trial:
    """One repetition: what it estimated, beside the truth."""

    estimate: Number
    truth: Number
    error: Number


@dataclass(frozen=True)
class Result:
    """Fields are named and ordered as in `result.json`; `trials` is there only where it was asked for.

    Where users are on other machines, `messages` and `bytes` are None as far as nobody here knows them.
    """

    run_id: str
    protocol: str
    transport: str
    nodes: int
    seeded: bool
    seed: int | None
    started: str | None
    seconds: float
    startup_seconds: float
    private_kept: bool
    messages: int | None
    bytes: int | None
    hops: int | None  # of walks
    rounds: int | None  # of gossip; where pairs meet, their activations
    estimate: Number
    standard_error: Number
    truth: Number
    error: Number
    outputs: list[dict[str, Any]]
    baselines: dict[str, dict[str, Any]]
    missing: list[int]
    faults: dict[str, int]
    headline: dict[str, Any] | None = None  # of the audit; of --fast, in advance
    worst: dict[str, Any] | None = None
    folder: str | None = None
    scores: dict[str, Any] | None = None  # of a learned model, where the launcher has the data
    warnings: list[str] | None = None
    traffic: dict[str, Any] | None = None  # of network shuffling: what each user sent
    traced: bool | None = None  # True where `wire.jsonl` of each peer tells what it received
    trials: list[Trial] | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `result.json`; with the folder, that of the commands."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.trials is None:
            del document["trials"]
        else:
            document["trials"] = [vars(trial) for trial in self.trials]
        for name in ("folder", "hops", "rounds", "scores", "warnings", "traffic", "traced"):
            if document[name] is None:
                del document[name]
        found: dict[str, Any] = plain(document)
        return found


@dataclass(frozen=True)
class Circumstances:
    """Facts about a run that its ledgers do not hold."""

    run_id: str
    seeded: bool
    seed: int | None
    started: str | None
    bytes: int | None
    missing: list[Peer]
    faults: dict[str, int]
    private_kept: bool
    traced: bool = False
    audited: bool = True  # whether the verdict is that of an audit, given the path, or a-priori


def make_result(
    run: RunPlan,
    found: Outcome,
    around: Circumstances,
    rows: Callable[[Peer], Any] | None,
    sensitivity: float | None,
    verdict: Verdict | None,
) -> Result:
    """Make the result; `rows` where the launcher has the data; `verdict` is None where there is no claim."""
    estimate = estimate_of(run, found)
    truth = None if rows is None else truth_of(run, found, rows)
    length = run.plan.length
    epsilon = None if verdict is None else verdict.headline.epsilon
    level = Level(sensitivity, epsilon, run.spec.privacy.delta or 0.0, around.audited)
    sight = None if rows is None else Sight(rows, truth, int(around.run_id[:16], 16))
    comparison = compared(run, found, estimate, level, sight)
    return Result(
        run_id=around.run_id,
        protocol=run.spec.run.protocol,
        transport=run.spec.run.transport,
        nodes=run.n,
        seeded=around.seeded,
        seed=around.seed,
        started=around.started,
        seconds=found.published_s - found.go_s,
        startup_seconds=found.go_s,
        private_kept=around.private_kept,
        messages=found.messages,
        bytes=around.bytes,
        hops=None if run.completes_per_user else length,
        rounds=length if run.completes_per_user else None,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        truth=truth,
        error=error_of(run, found, estimate.value, truth),
        outputs=[
            {"user": user, "value": plain_value(value), "collected_by_launcher": True}
            for user, value in sorted(found.finals.items())
        ],
        baselines=comparison.baselines,
        missing=sorted(around.missing),
        faults=dict(sorted(around.faults.items())),
        scores=comparison.scores,
        warnings=comparison.warnings,
        traffic=found.traffic,
        traced=around.traced or None,
        **verdict_document(verdict),
    )


class OfUsers(NamedTuple):
    """Users' own results: their mean, and how far the one that is furthest off is from it, for each number."""

    mean: Number
    furthest: Number


def of_users(outputs: Sequence[Mapping[str, Any]]) -> OfUsers | None:
    """Summarize users' own results where nothing is published; None where nobody's result is here."""
    rows = [one["value"] if isinstance(one["value"], list) else [one["value"]] for one in outputs]
    if not rows:
        return None
    mean = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    furthest = [max(abs(row[place] - middle) for row in rows) for place, middle in enumerate(mean)]
    vector = isinstance(outputs[0]["value"], list)
    return OfUsers(mean, furthest) if vector else OfUsers(mean[0], furthest[0])


def plain_value(value: Any) -> Number:
    """Return a float, or the floats of a vector."""
    return [float(part) for part in value] if hasattr(value, "__len__") else float(value)


Baselines = dict[str, dict[str, Any]]
Rows = Callable[[Peer], Any]


@dataclass(frozen=True)
class Level:
    """The privacy at which a run is compared, its headline's, and the sensitivity of one contribution in data units."""

    sensitivity: float | None
    epsilon: float | None
    delta: float
    given_paths: bool  # whether epsilon is of this very course of a walk, or in advance


@dataclass(frozen=True)
class Sight:
    """The data of a launcher that has them; the seed is for the noise that baselines draw."""

    rows: Rows
    truth: Number
    seed: int


@dataclass(frozen=True)
class Comparison:
    """`scores` are those of what was learned; None where nothing was, or the data are elsewhere."""

    baselines: Baselines
    scores: dict[str, Any] | None = None
    warnings: list[str] | None = None


def compared(run: RunPlan, found: Outcome, estimate: Estimate, level: Level, sight: Sight | None = None) -> Comparison:
    """Return the alternatives to a run, or to a planned one, at the same privacy."""
    analysis = run.protocol.analysis()
    learning = analysis.learning
    if learning is None:
        return Comparison(dict(baselines(run, found, estimate, level.sensitivity, level.epsilon, level.delta)))
    warnings = analysis.warnings(run) or None
    sigmas = learning.sigmas(run, found.paths if level.given_paths else None, level.epsilon, level.delta)
    if sight is None:
        return Comparison(learning.baselines(run, sigmas), None, warnings)
    scores, against = learning.scored(run, found, sight.rows, sight.truth, sigmas, sight.seed)
    return Comparison(against, scores, warnings)
