"""`plan`: the cost of a run before anything starts: privacy a priori, error, messages, bytes and time.

The costs follow from the plan alone. The error does not depend on data (for histograms: as if all categories were
equally frequent), users contribute equally often, and nothing is lost. The protocol's analysis says how the error
follows from the plan, and how many messages users send.

* `messages` counts what a run counts: what users send each other. Where chance decides, it is the expectation.
* `bytes` counts the frames of these, of enrolment, and of what goes to and from bootstrap and curator; acknowledgements
  that travel alone come on top.
* `seconds` is `HOP_S` a hop or exchange, as among processes of one machine. Across machines, add the network's delay.

`plan` and a node refuse runs whose costs would take too long to compute in advance; those that they allow take minutes
at most on one machine. These are no limits of runs: a local run may be larger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import ENVELOPE_BYTES, Number
from p2pdp.auditor.a_priori import Tradeoff, claims_a_priori, recommended
from p2pdp.auditor.headline import bounds_of, verdict_of
from p2pdp.core.claims import Claim, Refusal, Unit
from p2pdp.core.errors import P2pdpError, Refused, UsageError
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.crypto.enrolment import seat_size
from p2pdp.files.checks import from_file
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.reading import is_there
from p2pdp.files.spec import spec_to_toml
from p2pdp.files.tables import edges_of
from p2pdp.node.clock import check_expires
from p2pdp.node.measuring import with_measures
from p2pdp.protocols import protocol
from p2pdp.protocols.defaults import Fact
from p2pdp.protocols.learning import OWN
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.display import WithClaims, baseline_errors, bound_line, facts_markup, people
from p2pdp.report.documents import claim_document, plain, refusal_document, verdict_document
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.words import number
from p2pdp.report.result import Level, compared
from p2pdp.runs.prepared import sensitivity
from p2pdp.runs.target import Planned, Target, target_of
from p2pdp.runs.units import BothUnits, side_by_side
from p2pdp.transports.registry import transport_kind
from p2pdp.wire.padding import frame_size

HOP_S: Final = 1e-4
_SMALL_FRAMES: Final = 10  # frames of each user, until it is ready and after the result


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of a run, named as in `plan --json`; a run has hops or rounds."""

    standard_error: Number
    baselines: dict[str, dict[str, Any]]
    hops: int | None
    rounds: int | None
    messages: int
    bytes: int
    seconds: float


def costs_of(run: RunPlan, epsilon: float | None, delta: float) -> Costs:
    """Return the costs; local and central differential privacy are compared at the headline's `epsilon`."""
    analysis = run.protocol.analysis()
    outcome = analysis.typical(run)
    estimate = analysis.expected(run, outcome)
    moves = analysis.moves(run)
    length = run.plan.length
    level = Level(sensitivity(run), epsilon, delta, given_paths=False)
    return Costs(
        standard_error=estimate.standard_error,
        baselines=compared(run, outcome, estimate, level).baselines,
        hops=None if run.completes_per_user else length,
        rounds=length if run.completes_per_user else None,
        messages=round(moves),
        bytes=_bytes(run, moves),
        seconds=(moves if run.completes_per_user else length) * HOP_S,
    )


def _bytes(run: RunPlan, moves: float) -> int:
    sent, result = run.protocol.analysis().bytes_sent(run, moves)
    small = frame_size(ENVELOPE_BYTES)
    offer = frame_size(ENVELOPE_BYTES + len(spec_to_toml(run.spec).encode()))
    return round(sent) + run.n * (_SMALL_FRAMES * small + offer + _seat_bytes(run) + result - small)


def _seat_bytes(run: RunPlan) -> int:
    if run.graph is None or run.neighbours(0) is None:
        return seat_size(run.n, run.n)
    held = Counter(1 + run.graph.degree(user) for user in range(run.n))
    return round(sum(count * seat_size(run.n, entries) for entries, count in held.items()) / run.n)


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(WithClaims, Costs):
    """The plan of a run, with fields named as in `plan --json`; `target` is there only where it was asked for.

    `message_noise` states what noise on messages would buy (`gossip/analysis/forecast.py`) in synchronous gossip;
    `message_sigma_recommended` is the most of it that costs next to nothing. `at_target` is the plan with the noise
    that the target takes, and `assumed` says what the plan takes for granted of data that are not here.
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
    at_target: Plan | None = None
    warnings: list[str] = field(default_factory=list)
    outlook: list[Fact] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    units: list[BothUnits] | None = None  # where a record is the unit: what a user's whole data lose beside it

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
        document["assumed"] = self.assumed
        if self.units is not None:
            document["units"] = [one.to_json() for one in self.units]
        if self.outlook:
            document["outlook"] = {fact.name: fact.value for fact in self.outlook}
        if self.target is not None:
            document["target"] = vars(self.target)
            document["at_target"] = None if self.at_target is None else self.at_target.to_json()
        flat: dict[str, Any] = plain(document)
        return flat

    def _said(self) -> list[str]:
        error = "" if self.standard_error is None else f", standard error {number(self.standard_error)}"
        return [f"{self.protocol}, {people(self.nodes)}{error}", *bound_line(self.headline)]

    def _markup(self) -> list[Markup]:
        facts = [
            ("standard error", self.standard_error), *baseline_errors(self.baselines), ("messages", self.messages),
            ("bytes", self.bytes), ("seconds", self.seconds),
        ]  # fmt: skip
        return [facts_markup(facts), *super()._markup()]

    def _bounds(self) -> dict[str, Any]:
        return {"headline": self.headline, "worst": self.worst}


def plan_spec(spec: Spec, target_epsilon: float | None) -> Plan:
    """Plan a run; read data and edge list for their sizes only."""
    check_accountable(spec)
    planned = planned_of(spec)
    check_accountable(spec, planned.run.plan)
    if target_epsilon is None:
        return _plan_of(planned)
    target = target_of(planned, target_epsilon)
    run = target.applied_to(planned)
    return replace(_plan_of(planned), target=target, at_target=_plan_of(run))


def _plan_of(planned: Planned) -> Plan:
    run = planned.run
    spec, delta = run.spec, run.spec.privacy.delta
    assert delta is not None
    result = claims_a_priori(run, delta, spec.privacy.colluders, one_value=planned.one_value)
    analysis = run.protocol.analysis()
    result.add(analysis.forecast(run, delta))
    verdict = verdict_of(result.claims, result.refusals, run.n, delta)
    bounds = bounds_of(result.claims, result.refusals, run.n, delta) if run.by_record else []
    units = side_by_side(run, bounds, result.claims) if run.by_record else None
    tradeoff = analysis.message_noise(run, delta)
    advised = recommended(tradeoff) if tradeoff else None
    return Plan(
        protocol=spec.run.protocol,
        nodes=run.n,
        delta=delta,
        claims=result.claims,
        refusals=result.refusals,
        **verdict_document(verdict),
        message_noise=tradeoff,
        message_sigma_recommended=None if advised is None else advised.message_sigma,
        warnings=[*analysis.warnings(run), *planned.warnings, *_cautions(run)],
        outlook=analysis.outlook(run, delta),
        assumed=planned.assumed,
        units=units,
        **vars(costs_of(run, verdict.headline.epsilon, delta)),
    )


def _cautions(run: RunPlan) -> list[str]:
    """Return why `run` would refuse what can be planned, and what of the spec it would not use."""
    from p2pdp.runs.budgeting import check_local

    found = []
    kind, given = transport_kind(run.spec.run.transport), asdict(run.spec.transport)
    if unused := [key for key, value in given.items() if value is not None and key not in kind.keys]:
        found.append(f"[transport] {', '.join(unused)}: not used, for transport {run.spec.run.transport} has no broker")
    for check in (partial(check_expires, run.spec.run), partial(check_local, run)):
        try:
            check()
        except P2pdpError as error:
            found.append(f"a run would be refused: {error}")
    return found


def planned_of(spec: Spec) -> Planned:
    """Plan a run; where its data are files of their owners that are not here, take what the spec says of them."""
    n = spec.run.nodes
    edges, spec = edges_of(spec.graph), with_measures(spec)
    path = spec.data.path if from_file(spec) else None
    if path is not None and not is_there(Path(path)):
        dimensions, assumed = _declared(spec, path)
        return Planned(
            plan_run(spec, n, dimensions, edges), edges, one_value=spec.privacy.unit == Unit.RECORD, assumed=assumed
        )
    data = load_data(spec, n)
    made_up = spec.data.kind not in REAL_DATA  # one value a user
    one_value = made_up or all(len(data.user(user).rows) == 1 for user in range(n))
    by_record = spec.privacy.unit == Unit.RECORD
    run = plan_run(spec, n, data.dimensions, edges, rows=data.stated if by_record else None)
    return Planned(run, edges, one_value or by_record, warnings=_warnings(spec, data))


def _warnings(spec: Spec, data: DataSet) -> list[str]:
    """Return a warning where users have no more rows than a minibatch."""
    batch, n = spec.task.batch, spec.run.nodes
    few = 0 if batch is None else sum(len(data.user(user)) <= batch for user in range(n))
    if not few:
        return []
    whose = "every user has" if few == n else f"{few} of {n} users have"
    return [f"[task] batch: {whose} {batch} rows or fewer, and takes gradients over all of them, no minibatches"]


def _declared(spec: Spec, path: str) -> tuple[int, list[str]]:
    """Return how many numbers a value has, by the columns that the spec names, and what is assumed of the rows."""
    from p2pdp.runs.accepting import spec_dimensions

    dimensions = spec_dimensions(spec)
    if dimensions is None or spec.task.kind == OWN:
        raise UsageError(f"{path}: is not here; name [data] columns, which say how many numbers a value has")
    numbers = "one number" if dimensions == 1 else f"{dimensions} numbers"
    name = Path(path).name
    return dimensions, [f"{name} is not on this machine; each owner has one, with {numbers} a value and any rows"]


USERS_MAX: Final = 200_000


def check_accountable(spec: Spec, plan: Any = None) -> None:
    """Refuse what takes too long to compute; with the plan, also by what follows from the graph."""
    _check("[run] nodes", "users", spec.run.nodes, USERS_MAX)
    for work in protocol(spec.run.protocol).work(spec, plan):
        _check(work.key, work.what, work.actual, work.most)


def _check(name: str, what: str, actual: int, most: int) -> None:
    if actual > most:
        raise Refused(
            f"{name}: this run has {actual:,} {what}, and what a run costs is computed for at most {most:,} of them"
        )
