"""What a run is expected to take, beside privacy: error, messages, bytes, time, from its plan alone.

The error does not depend on data (for histograms: if all categories were alike), users contribute equally often, and
nothing is lost. Of gossip it is exact (of pairs and changing graphs for one draw of who meets whom); among more than
`EXACT_MAX` users gossip is taken to have come to its mean.

* `messages` are those that a run counts: each token's moves from one user to another and its total, the exchanges of
  gossip, or the reports, cover and marks of shuffling with what is handed in at the end, and three a user for getting
  ready, starting and the result;
* `bytes` are the frames of these and of enrolment; acknowledgements that travel alone come on top;
* `seconds` are `HOP_S` a hop or exchange, as among processes of one machine. Across machines add the network's delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.assembly.found import Number, Outcome
from p2pdp.assembly.gossip_descents import noise_end
from p2pdp.assembly.outcome import estimate_of
from p2pdp.assembly.relay_traffic import report_frame_bytes
from p2pdp.files.spec import spec_to_toml
from p2pdp.mechanisms.report_estimates import expected
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.gossip_sgd import GossipSgdPlan
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.report.compared import Level, compared
from p2pdp.runs.prepared import sensitivity
from p2pdp.sim.fast_gossip import standard_error_of
from p2pdp.wire.padding import frame_size

HOP_S: Final = 1e-4
EXACT_MAX: Final = 2048
_SMALL_FRAMES: Final = 10  # of each user, until it is ready and after the result
_ROSTER_BYTES: Final = 128  # of each user, and of five more for the rest
_ENVELOPE_BYTES: Final = 120  # of a frame, at most, around its content
_NUMBER_BYTES: Final = 9  # of a number, packed


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Named as in `plan --json`; a run has hops or rounds."""

    standard_error: Number
    baselines: dict[str, dict[str, Any]]
    hops: int | None
    rounds: int | None
    messages: int
    bytes: int
    seconds: float


def costs_of(run: RunPlan, epsilon: float | None, delta: float) -> Costs:
    """`epsilon` is the headline's, at which local and central differential privacy are compared."""
    outcome = _outcome(run)
    estimate = _expected(run, outcome)
    moves = float(run.exchanges) if run.finishes_one_by_one else _moves(run)
    length = run.plan.length
    level = Level(sensitivity(run), epsilon, delta, given_paths=False)
    return Costs(
        standard_error=estimate.standard_error,
        baselines=compared(run, outcome, estimate, level).baselines,
        hops=None if run.finishes_one_by_one else length,
        rounds=length if run.finishes_one_by_one else None,
        messages=round(moves) + _handed_in(run) + 3 * run.n + 4 + len(run.plan.starts),
        bytes=_bytes(run, moves),
        seconds=(moves if run.finishes_one_by_one else length) * HOP_S,
    )


def _handed_in(run: RunPlan) -> int:
    """What users tell the curator at the end, beside totals: their reports, and that these are all."""
    return 2 * run.n if isinstance(run.plan, ShufflePlan) else 0


def _expected(run: RunPlan, outcome: Outcome) -> Estimate:
    if isinstance(run.plan, ShufflePlan):
        plan = run.plan
        told = expected(plan.randomizer, plan.n, plan.dummies if plan.single else None)
        return run.protocol.estimate(plan, np.concatenate([[plan.n], told.value, told.standard_error]), plan.n)
    return _averaged(run) if run.finishes_one_by_one else estimate_of(run, outcome)


def _outcome(run: RunPlan) -> Outcome:
    """A result in which every user contributed as often as any other."""
    if run.finishes_one_by_one:
        return Outcome(counted={user: {0: 1} for user in range(run.n)})
    total = run.plan.length
    counted = {user: {0: total // run.n + (user < total % run.n)} for user in range(run.n)}
    return Outcome(_typical(run, total), counted)


def _averaged(run: RunPlan) -> Estimate:
    """Of a user's own result, or of what is published."""
    plan = run.plan
    if isinstance(plan, GossipSgdPlan):
        end = noise_end(run)
        return Estimate(None, None if end is None else [end] * plan.shape[0])
    exact = run.n <= EXACT_MAX and run.graph is not None and isinstance(plan, AveragingPlan)
    error = standard_error_of(run) if exact else None
    if error is None:  # of a mean of all users' values
        variance = 2.0 if plan.noise.name == "laplace" else 1.0
        error = math.ldexp(math.sqrt(variance / run.n) * plan.noise.scale, plan.grid_exponent)
    return Estimate(None, [error] * plan.shape[0] if plan.shape else error)


def _typical(run: RunPlan, total: int) -> Any:
    plan = run.plan
    if not plan.shape:
        return 0
    if run.spec.task.kind != "histogram":
        return np.zeros(plan.shape[0], dtype=np.int64)
    tally, categories = total + 2 * plan.dummies * plan.tokens, plan.shape[0]
    return np.array([tally // categories + (place < tally % categories) for place in range(categories)])


def _moves(run: RunPlan) -> float:
    """Tokens and totals that are sent: a token that stays with its holder is not."""
    plan = run.plan
    leaves = 1.0 - 1.0 / run.n if plan.order == "complete" or run.n == 1 else 1.0
    begins = leaves if plan.order != "ring" and plan.tokens > 1 else 0.0
    return float(plan.tokens * ((plan.steps - 1) * leaves + 1.0 + begins))


def _bytes(run: RunPlan, moves: float) -> int:
    numbers = run.plan.shape[0] if run.plan.shape else 1
    small = frame_size(_ENVELOPE_BYTES)
    token = frame_size(_ENVELOPE_BYTES + numbers * _NUMBER_BYTES)
    sent, result = moves * token, token  # a result is as large as a token
    if isinstance(run.plan, ShufflePlan):
        report = report_frame_bytes(run.plan)
        marks = run.plan.marks(_edges(run))
        sent = marks * small + (moves - marks + run.n) * report + run.n * small
        result = frame_size(_ENVELOPE_BYTES + (1 + 2 * numbers) * _NUMBER_BYTES)
    offer = frame_size(_ENVELOPE_BYTES + len(spec_to_toml(run.spec).encode()))
    roster = frame_size(_ENVELOPE_BYTES + _ROSTER_BYTES * (run.n + 5))
    return round(sent) + run.n * (_SMALL_FRAMES * small + offer + roster + result - small)


def _edges(run: RunPlan) -> int:
    assert run.graph is not None
    return run.graph.edge_count
