"""What a run gave, as `result.json` says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from p2pdp.assembly.outcome import Number, Outcome, baselines, difference, estimate_of, truth_of
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.documents import plain


@dataclass(frozen=True)
class Trial:
    """One repetition: what it estimated, beside the truth."""

    estimate: Number
    truth: Number
    error: Number


@dataclass(frozen=True)
class Result:
    """Fields are named and ordered as in `result.json`; `trials` is there only where it was asked for."""

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
    messages: int
    bytes: int
    hops: int
    estimate: Number
    standard_error: Number
    truth: Number
    error: Number
    outputs: list[dict[str, Any]]
    baselines: dict[str, dict[str, Number]]
    missing: list[int]
    faults: dict[str, int]
    folder: str | None = None
    trials: list[Trial] | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """The document of `result.json`; with the folder, that of the commands."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.trials is None:
            del document["trials"]
        else:
            document["trials"] = [vars(trial) for trial in self.trials]
        if self.folder is None:
            del document["folder"]
        found: dict[str, Any] = plain(document)
        return found


@dataclass(frozen=True)
class Circumstances:
    """What the world around a run knows of it."""

    run_id: str
    seeded: bool
    seed: int | None
    started: str | None
    bytes: int
    missing: list[Peer]
    faults: dict[str, int]
    private_kept: bool


def make_result(
    run: RunPlan,
    found: Outcome,
    around: Circumstances,
    rows: Callable[[Peer], Any] | None,
    sensitivity: float | None,
    epsilon: float | None,
) -> Result:
    """`rows` where the launcher has the data; `epsilon` is the headline's, None where there is no claim."""
    estimate = estimate_of(run, found)
    truth = None if rows is None else truth_of(run, found, rows)
    delta = run.spec.privacy.delta or 0.0
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
        hops=run.plan.steps * run.plan.tokens,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        truth=truth,
        error=difference(estimate.value, truth),
        outputs=[],
        baselines=baselines(run, found, estimate, sensitivity, epsilon, delta),
        missing=sorted(around.missing),
        faults=dict(sorted(around.faults.items())),
    )
