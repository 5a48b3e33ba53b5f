"""`plan`: what a run would cost, before anything starts: privacy a priori, error, messages, bytes and time.

The costs follow from the plan alone. The error does not depend on data (for histograms: as if all categories were
equally frequent), users contribute equally often, and nothing is lost. The protocol's analysis says how the error
follows from the plan, and how many messages users send.

* `messages` counts what a run counts: what users send each other, what is handed in at the end, and three messages a
  user for getting ready, starting and the result.
* `bytes` counts the frames of these and of enrolment; acknowledgements that travel alone come on top.
* `seconds` is `HOP_S` a hop or exchange, as among processes of one machine. Across machines, add the network's delay.

`plan` and a node refuse runs whose costs would take too long to compute in advance. What is allowed takes minutes at
most on one machine. These are no limits of runs: a local run may be larger.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import ENVELOPE_BYTES, Number
from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.headline import verdict_of
from p2pdp.audit.tradeoff import Tradeoff, recommended
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.errors import Refused
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.files.spec import spec_to_toml
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.documents import claim_document, plain, refusal_document, verdict_document
from p2pdp.report.result import Level, compared
from p2pdp.runs.prepared import sensitivity
from p2pdp.runs.target import Planned, Target, target_of
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


@dataclass(frozen=True, kw_only=True)
class Plan(Costs):
    """Fields are named as in `plan --json`; `target` is there only where it was asked for.

    `message_noise` is what noise on messages would buy (`gossip/analysis/forecast.py`), of synchronous gossip;
    `message_sigma_recommended` is the most of it that costs next to nothing.
    """

    protocol: str
    nodes: int
    delta: float
    claims: list[Claim]
    refusals: list[Refusal]
    headline: dict[str, Any]
    worst: dict[str, Any]
    message_noise: list[Tradeoff] | None = None
    message_sigma_recommended: float | None = None
    target: Target | None = None
    warnings: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "protocol": self.protocol,
            "nodes": self.nodes,
            "delta": self.delta,
            "headline": self.headline,
            "worst": self.worst,
            "claims": [claim_document(claim) for claim in self.claims],
            "refusals": [refusal_document(refusal) for refusal in self.refusals],
        }
        document |= {item.name: getattr(self, item.name) for item in fields(Costs)}
        document["message_noise"] = None if self.message_noise is None else [vars(one) for one in self.message_noise]
        document["message_sigma_recommended"] = self.message_sigma_recommended
        document["warnings"] = self.warnings
        if self.target is not None:
            document["target"] = vars(self.target)
        found: dict[str, Any] = plain(document)
        return found


def plan_spec(spec: Spec, target_epsilon: float | None) -> Plan:
    """Reads data and edge list for their sizes only."""
    check_accountable(spec)
    planned = planned_of(spec)
    run = planned.run
    check_accountable(spec, run.plan)
    delta = spec.privacy.delta
    assert delta is not None
    target = None if target_epsilon is None else target_of(planned, target_epsilon)
    found = beforehand(run, delta, spec.privacy.colluders, one_value=planned.one_value)
    analysis = run.protocol.analysis()
    found.add(analysis.forecast(run, delta))
    verdict = verdict_of(found.claims, found.refusals, run.n, delta)
    tradeoff = analysis.message_noise(run, delta)
    advised = recommended(tradeoff) if tradeoff else None
    return Plan(
        protocol=spec.run.protocol,
        nodes=run.n,
        delta=delta,
        claims=found.claims,
        refusals=found.refusals,
        **verdict_document(verdict),
        message_noise=tradeoff,
        message_sigma_recommended=None if advised is None else advised.message_sigma,
        target=target,
        warnings=analysis.warnings(run),
        **vars(costs_of(run, verdict.headline.epsilon, delta)),
    )


def planned_of(spec: Spec) -> Planned:
    n = spec.run.nodes
    edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
    data = load_data(spec, n)
    made_up = spec.data.kind not in ("csv", "npy")  # one value a user
    one_value = made_up or all(len(data.user(user).rows) == 1 for user in range(n))
    return Planned(plan_run(spec, n, data.dimensions, edges), edges, one_value)


USERS_MAX: Final = 200_000


def check_accountable(spec: Spec, plan: Any = None) -> None:
    """`Refused` where computing costs would take too long; with the plan also by what follows from the graph."""
    _check("[run] nodes", "users", spec.run.nodes, USERS_MAX)
    for work in protocol(spec.run.protocol).work(spec, plan):
        _check(work.key, work.what, work.actual, work.most)


def _check(name: str, what: str, actual: int, most: int) -> None:
    if actual > most:
        raise Refused(
            f"{name}: this run has {actual:,} {what}, and what a run costs is computed for at most {most:,} of them"
        )
