"""The result of a run as in `result.json`, with what the same privacy would have cost otherwise.

Sums, histograms, averages and reports are compared with local and central baselines by standard errors alone; what
learns also by the noise that each alternative needs, and by scores where the launcher has the data. The protocol's
analysis says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from p2pdp.assembly.curves import curves_document
from p2pdp.assembly.outcome import Number, Outcome, baselines, error_of, estimate_of, truth_of
from p2pdp.auditor.headline import Verdict
from p2pdp.core.endings import Stopped, why_stopped
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.display import Pictured, baseline_errors, bound_line, facts_markup, people, verdict_markup
from p2pdp.report.documents import plain, verdict_document
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WHERE_KNOWN: Final = (
    "folder", "hops", "rounds", "scores", "curves", "warnings", "traffic", "survivors", "stopped", "traced",
    "audit_problem",
)  # fmt: skip


Sigmas = dict[str, float | None]


@dataclass(frozen=True)
class Trial:
    """One repetition: what it estimated, beside the truth."""

    estimate: Number
    truth: Number
    error: Number


@dataclass(frozen=True, repr=False)
class Result(Pictured):
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
    curves: dict[str, Any] | None = None  # over steps, where public rows were declared and the launcher has the data
    warnings: list[str] | None = None
    traffic: dict[str, Any] | None = None  # of network shuffling: what each user sent
    survivors: list[int] | None = None  # whose values are in the result, where that is decided
    stopped: dict[str, Any] | None = None  # why bootstrap stopped it without a result, and who is concerned
    traced: bool | None = None  # True where `wire.jsonl` of each peer tells what it received
    audit_problem: str | None = None  # why the ledgers did not pass verification at the end
    trials: list[Trial] | None = field(default=None)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Result:
        """Return the result that a document holds."""
        return cls(**{"hops": None, "rounds": None, **document})

    def to_json(self) -> dict[str, Any]:
        """Return the document of `result.json`; with the folder, that of the commands."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.trials is None:
            del document["trials"]
        else:
            document["trials"] = [vars(trial) for trial in self.trials]
        for name in _WHERE_KNOWN:
            if document[name] is None:
                del document[name]
        found: dict[str, Any] = plain(document)
        return found

    def _said(self) -> list[str]:
        if self.stopped is not None:
            found = str(self.stopped["text"])
        elif self.estimate is None:
            found = "every user has a result of its own"
        else:
            error = "" if self.standard_error is None else f" +- {number(self.standard_error)}"
            found = f"estimate {number(self.estimate)}{error}"
        simulated = ["simulated: protects nobody"] if self.seeded else []
        simulated += [] if self.audit_problem is None else ["VERIFICATION FAILED"]
        return [", ".join([self.protocol, people(self.nodes), found, *simulated]), *bound_line(self.headline)]

    def _markup(self) -> list[Markup]:
        facts = [
            ("estimate", self.estimate),
            ("standard error", self.standard_error),
            *baseline_errors(self.baselines),
            ("missing users", len(self.missing) or None),
        ]
        return [facts_markup(facts), *verdict_markup(self.headline, self.worst)]

    def _rows(self) -> tuple[list[dict[str, Any]], None]:
        """Return a row for each trial, for each number of the estimate, or for each user's own result."""
        if self.trials is not None:
            return [{"trial": place, **vars(trial)} for place, trial in enumerate(self.trials)], None
        if self.estimate is None:
            return [{"user": one["user"], "value": one["value"]} for one in self.outputs], None
        names = ("estimate", "standard_error", "truth", "error")
        held = {name: getattr(self, name) for name in names}
        count = len(self.estimate) if isinstance(self.estimate, list) else 1
        return [
            {name: value[place] if isinstance(value, list) else value for name, value in held.items()}
            for place in range(count)
        ], None

    def _draw(self, axes: Axes) -> None:
        from p2pdp.report.pictures import draw_bars, draw_estimate, draw_learning

        title = f"{self.protocol}, {people(self.nodes)}"
        if self.curves is not None:
            draw_learning(axes, self.curves, title)
            return
        if isinstance(self.estimate, list) or self.standard_error is None:
            if self.estimate is None:
                raise Refused("plot: nothing was published, and users' own results are for them only")
            draw_estimate(axes, self.estimate, self.standard_error, title)
            return
        beside = [(name, one["standard_error"]) for name, one in self.baselines.items()]
        known = [(name, error) for name, error in [("this run", self.standard_error), *beside] if error is not None]
        draw_bars(axes, [name for name, _ in known], [error for _, error in known], "standard error")
        axes.set_title(f"{title}: error at the same epsilon")


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


class Again(NamedTuple):
    """One more trial of a run: its number, and of the first trial the noise of its baselines and its run id."""

    trial: int = 0
    sigmas: Sigmas | None = None
    run_id: str | None = None


FIRST: Final = Again()


def make_result(
    run: RunPlan,
    found: Outcome,
    around: Circumstances,
    rows: Callable[[Peer], Any] | None,
    sensitivity: float | None,
    verdict: Verdict | None,
    again: Again = FIRST,
) -> Result:
    """Make the result; `rows` where the launcher has the data; `verdict` is None where there is no claim."""
    estimate = estimate_of(run, found)
    truth = None if rows is None else truth_of(run, found, rows)
    epsilon = None if verdict is None else verdict.headline.epsilon
    level = Level(sensitivity, epsilon, run.spec.privacy.delta or 0.0, around.audited, again.sigmas)
    sight = None if rows is None else Sight(rows, truth, int((again.run_id or around.run_id)[:16], 16) + again.trial)
    comparison = compared(run, found, estimate, level, sight)
    return Result(
        **_told_by(run, found, around),
        seconds=found.published_s - found.go_s,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        truth=truth,
        error=error_of(run, found, estimate.value, truth),
        outputs=[
            {"user": user, "value": plain_value(value), "collected_by_launcher": True}
            for user, value in sorted(found.finals.items())
        ],
        baselines=comparison.baselines,
        scores=comparison.scores,
        curves=comparison.curves,
        warnings=comparison.warnings,
        traffic=found.traffic,
        survivors=found.survivors,
        **verdict_document(verdict),
    )


def stopped_result(run: RunPlan, found: Outcome, around: Circumstances, why: Stopped) -> Result:
    """Return what is known of a run that was stopped: who is out, the faults, and why."""
    return Result(
        **_told_by(run, found, around),
        seconds=0.0,
        estimate=None,
        standard_error=None,
        truth=None,
        error=None,
        outputs=[],
        baselines={},
        stopped={"reason": why.reason, "concerned": why.concerned, "text": why_stopped(*why)},
    )


def _told_by(run: RunPlan, found: Outcome, around: Circumstances) -> dict[str, Any]:
    """Return what a result says of a run whether or not it came to an estimate."""
    length = run.plan.length
    return {
        "run_id": around.run_id,
        "protocol": run.spec.run.protocol,
        "transport": run.spec.run.transport,
        "nodes": run.n,
        "seeded": around.seeded,
        "seed": around.seed,
        "started": around.started,
        "startup_seconds": found.go_s,
        "private_kept": around.private_kept,
        "messages": found.messages,
        "bytes": around.bytes,
        "hops": None if run.completes_per_user else length,
        "rounds": length if run.completes_per_user else None,
        "missing": sorted(around.missing),
        "faults": dict(sorted(around.faults.items())),
        "traced": around.traced or None,
    }


class OfUsers(NamedTuple):
    """Users' own results: their mean, and how far the one that is furthest off is from it, for each number."""

    mean: Number
    furthest: Number


def of_users(outputs: Sequence[Mapping[str, Any]]) -> OfUsers | None:
    """Summarize users' own results where nothing is published; None where nobody's result is here."""
    rows = [one["value"] if hasattr(one["value"], "__len__") else [one["value"]] for one in outputs]
    if not rows:
        return None
    mean = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    furthest = [max(abs(row[place] - middle) for row in rows) for place, middle in enumerate(mean)]
    vector = hasattr(outputs[0]["value"], "__len__")
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
    sigmas: Sigmas | None = None  # of the baselines, where they are decided already


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
    curves: dict[str, Any] | None = None


def compared(run: RunPlan, found: Outcome, estimate: Estimate, level: Level, sight: Sight | None = None) -> Comparison:
    """Return the alternatives to a run, or to a planned one, at the same privacy."""
    analysis = run.protocol.analysis()
    learning = analysis.learning
    if learning is None:
        return Comparison(dict(baselines(run, found, estimate, level.sensitivity, level.epsilon, level.delta)))
    warnings = analysis.warnings(run) or None
    sigmas = level.sigmas
    if sigmas is None:
        sigmas = learning.sigmas(run, found.paths if level.given_paths else None, level.epsilon, level.delta)
    if sight is None:
        return Comparison(learning.baselines(run, sigmas), None, warnings)
    told = learning.scored(run, found, sight.rows, sight.truth, sigmas, sight.seed)
    curves = curves_document(run, learning.step, learning.steps(run), told.curves)
    return Comparison(told.baselines, told.scores, warnings, curves)
