"""What a run is expected to take, beside privacy: error, messages, bytes, time, from its plan alone.

The error does not depend on data (for histograms: if all categories were alike), users contribute equally often, and
nothing is lost. The protocol's analysis says how it follows from the plan, and how many messages users send.

* `messages` are those that a run counts: what users send each other, what is handed in at the end, and three a user for
  getting ready, starting and the result;
* `bytes` are the frames of these and of enrolment; acknowledgements that travel alone come on top;
* `seconds` are `HOP_S` a hop or exchange, as among processes of one machine. Across machines add the network's delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from p2pdp.assembly.found import Number
from p2pdp.assembly.traffic import ENVELOPE_BYTES
from p2pdp.files.spec import spec_to_toml
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.result import Level, compared
from p2pdp.runs.prepared import sensitivity
from p2pdp.wire.padding import frame_size

HOP_S: Final = 1e-4
_SMALL_FRAMES: Final = 10  # of each user, until it is ready and after the result
_ROSTER_BYTES: Final = 128  # of each user, and of five more for the rest


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
    analysis = run.protocol.analysis()
    outcome = analysis.typical(run)
    estimate = analysis.expected(run, outcome)
    moves = analysis.moves(run)
    length = run.plan.length
    level = Level(sensitivity(run), epsilon, delta, given_paths=False)
    return Costs(
        standard_error=estimate.standard_error,
        baselines=compared(run, outcome, estimate, level).baselines,
        hops=None if run.finishes_one_by_one else length,
        rounds=length if run.finishes_one_by_one else None,
        messages=round(moves) + analysis.handed_in(run) + 3 * run.n + 4 + len(run.plan.starts),
        bytes=_bytes(run, moves),
        seconds=(moves if run.finishes_one_by_one else length) * HOP_S,
    )


def _bytes(run: RunPlan, moves: float) -> int:
    sent, result = run.protocol.analysis().bytes_sent(run, moves)
    small = frame_size(ENVELOPE_BYTES)
    offer = frame_size(ENVELOPE_BYTES + len(spec_to_toml(run.spec).encode()))
    roster = frame_size(ENVELOPE_BYTES + _ROSTER_BYTES * (run.n + 5))
    return round(sent) + run.n * (_SMALL_FRAMES * small + offer + roster + result - small)
