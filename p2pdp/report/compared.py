"""What the same privacy would have cost otherwise: local and central baselines, and for models their scores.

Sums, histograms, averages and reports are compared by their standard errors alone. What learns is compared by the noise
that each alternative needs as well, and by scores where the launcher has the data. How, a protocol's analysis
says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from p2pdp.assembly.found import Number, Outcome
from p2pdp.assembly.outcome import baselines
from p2pdp.core.ids import Peer
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan

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
    """What a launcher sees who has the data; the seed is of the noise that baselines draw."""

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
    """The alternatives to a run, or to a planned one, at the same privacy."""
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
