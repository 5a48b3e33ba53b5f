"""What the same privacy would have cost otherwise: local and central baselines, and for models their scores.

Sums, histograms, averages and reports are compared by their standard errors alone. What learns is compared by the noise
that each alternative needs as well, and by scores where the launcher has the data. Walks and gossip differ in what is
accounted for; which it is follows from the run's plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.assembly.found import Number, Outcome, Path
from p2pdp.assembly.gossip_learned import gossip_baselines_of, gossip_scored
from p2pdp.assembly.learned import baselines_of as walk_baselines_of
from p2pdp.assembly.learned import scored as walk_scored
from p2pdp.assembly.outcome import baselines
from p2pdp.audit.descent_levels import sigmas_of
from p2pdp.audit.gossip_levels import gossip_sigmas_of
from p2pdp.core.ids import Peer
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.gossip_sgd import GossipSgdPlan
from p2pdp.protocols.learning import warnings_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk_sgd import SgdPlan

Baselines = dict[str, dict[str, Any]]
Rows = Callable[[Peer], Any]
Sigmas = dict[str, float | None]


@dataclass(frozen=True)
class Learning:
    """How one family of learning is compared; its noise along the given paths, or in advance."""

    sigmas: Callable[[RunPlan, Sequence[Path] | None, float | None, float], Sigmas]
    baselines: Callable[[RunPlan, Sigmas], Baselines]
    scored: Callable[[RunPlan, Outcome, Rows, Number, Sigmas, int], tuple[dict[str, Any], Baselines]]


def _gossip_sigmas(run: RunPlan, _paths: object, epsilon: float | None, delta: float) -> Sigmas:
    return gossip_sigmas_of(run, epsilon, delta)  # by composition over the gradients: there is no path


_LEARNING: Final[tuple[tuple[type, Learning], ...]] = (
    (SgdPlan, Learning(sigmas_of, walk_baselines_of, walk_scored)),
    (GossipSgdPlan, Learning(_gossip_sigmas, gossip_baselines_of, gossip_scored)),
)


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
    learning = next((one for kind, one in _LEARNING if isinstance(run.plan, kind)), None)
    if learning is None:
        return Comparison(dict(baselines(run, found, estimate, level.sensitivity, level.epsilon, level.delta)))
    warnings = warnings_of(run.plan.descent, run.plan.rate) or None
    sigmas = learning.sigmas(run, found.paths if level.given_paths else None, level.epsilon, level.delta)
    if sight is None:
        return Comparison(learning.baselines(run, sigmas), None, warnings)
    scores, against = learning.scored(run, found, sight.rows, sight.truth, sigmas, sight.seed)
    return Comparison(against, scores, warnings)
