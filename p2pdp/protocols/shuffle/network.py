"""Network shuffling, `shuffle.all` and `shuffle.single`: the randomizer, the rounds, and the published estimate.

`shuffle.all` [LTT22, Algorithm 1]: every report that a user holds in the end goes to the curator. `shuffle.single`
[LTT22, Algorithm 2]: each user hands in one of the reports that it holds, or a dummy. The machine is in
`shuffling.py`.

From the graph follow the number of rounds, the overlap of the laws of two users' reports in the end (on which the claim
rests), and the expected number of users who hold nothing: facts that bootstrap signs, so that a claim can be made
before the run, and by auditors who do not know the graph.

The result is the estimate with its standard errors, and the number of reports in it. A user contributes its first
row, or each of its rows where the unit is a record: a category, bounded numbers, or with PrivUnit that row scaled to
length 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.spec import NoisePart, Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import MalformedReport, Randomizer
from p2pdp.mechanisms.reporting.estimates import of_all, of_single
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, WHOLE_USERS, Estimate, Fact, ProtocolDefaults, Work
from p2pdp.protocols.records import records_of
from p2pdp.protocols.run_plan import EXCESS, MARK_BYTES, VISIT_BYTES, at_most
from p2pdp.protocols.shuffle.options import OPTIONS, ShufflePart
from p2pdp.protocols.shuffle.plan import MESSAGES, ShufflePlan, check_shuffle
from p2pdp.protocols.shuffle.shuffling import Shuffle
from p2pdp.tasks.reports import ReportInputs, sealed_bytes
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan
    from p2pdp.protocols.shuffle.analysis.reports import ShuffleAnalysis

TASKS: Final = {
    "mean": ("privunit", "gaussian", "laplace", "none"),
    "histogram": ("randomized_response", "none"),
}


_REGULAR: Final = frozenset({"complete", "ring", "torus", "hypercube", "exponential", "regular"})
RELAYS_MAX: Final = 100_000
REPORTS_MAX: Final = 5_000  # of one user: the curator takes some four thousand at once (`peer/limits.py`)


class NetworkShuffle(ProtocolDefaults):
    """Network shuffling by [LTT22, Algorithms 1 and 2]."""

    options = OPTIONS
    messages = MESSAGES

    def __init__(self, name: str, *, single: bool) -> None:
        self.name = name
        self.tasks = TASKS
        self.units = WHOLE_USERS if single else USERS_AND_RECORDS
        self._single = single

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        from p2pdp.topology.report_walks.matrix import expected_empty  # scipy, which a user's node does not need
        from p2pdp.topology.report_walks.mixing import rounds_of
        from p2pdp.topology.report_walks.overlap import overlap_least

        shuffle: ShufflePart = spec.options
        assert shuffle.rounds is not None
        rounds = rounds_of(graph, shuffle.stay, shuffle.rounds)
        overlap, by = overlap_least(graph, shuffle.stay, rounds)
        facts: dict[str, Fact] = {"rounds": rounds, "overlap": overlap, "overlap_by": by}
        if self._single:
            dummies, variance = expected_empty(graph, shuffle.stay, rounds)
            facts |= {"dummies": dummies, "dummies_variance": variance}
        if shuffle.cover:
            facts["edges_min"] = min(graph.degree(user) for user in range(graph.n))
        return facts

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> ShufflePlan:
        shuffle: ShufflePart = spec.options
        randomizer = randomizer_of(spec, dimensions)
        rounds = int(_fact(facts, "rounds"))
        records = records_of(spec, facts)
        if records is not None and records.most > REPORTS_MAX:
            raise UsageError(
                f"[privacy] unit: every row is a report, and a user has {records.most:,} rows; a user sends at most "
                f"{REPORTS_MAX:,}."
            )
        return ShufflePlan(
            n=n,
            rounds=rounds,
            stay=shuffle.stay,
            single=self._single,
            slots=slots_for(n, rounds, int(_fact(facts, "edges_min"))) if shuffle.cover else None,
            randomizer=randomizer,
            sealed_bytes=sealed_bytes(randomizer.report_bytes),
            patience_s=spec.run.patience_s,
            overlap=_fact(facts, "overlap"),
            dummies=(_fact(facts, "dummies"), _fact(facts, "dummies_variance")) if self._single else (0.0, 0.0),
            rows=None if records is None else records.rows,
        )

    def machine(self, plan: ShufflePlan, user: Peer, neighbours: Sequence[Peer], inputs: Any) -> Shuffle:
        return Shuffle(plan, user, neighbours, inputs)

    def inputs(self, plan: ShufflePlan, rows: Any) -> tuple[ReportInputs, list[Any]]:
        values = reported_values(plan, len(rows.rows) if plan.rows is not None else 1, rows.rows)
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: ShufflePlan, values: list[Any]) -> ReportInputs:
        return ReportInputs(values, plan.randomizer)

    def check(self, plan: ShufflePlan, message: Message) -> str | None:
        return check_shuffle(plan, message)

    def publish(self, plan: ShufflePlan, totals: Sequence[bytes]) -> Any:
        """Return the number of reports, the estimate and its standard errors; None if no report arrived."""
        if not totals:
            return None
        return result_of(plan, np.stack([plan.randomizer.decoded(report) for report in totals]))

    def report_bytes(self, plan: ShufflePlan) -> int:
        return plan.randomizer.report_bytes

    def is_report(self, plan: ShufflePlan, report: bytes) -> bool:
        return is_report(plan, report)

    def estimate(self, plan: ShufflePlan, published: Any, contributions: int) -> Estimate:
        if published is None:
            return Estimate(None, None)
        value, error = np.split(np.asarray(published[1:]), 2)
        if not plan.shape:
            return Estimate(float(value[0]), float(error[0]))
        return Estimate(value.tolist(), error.tolist())

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        rounds = spec.options.rounds
        return {"rounds": rounds if isinstance(rounds, int) else None}

    def rounds(self, plan: ShufflePlan) -> int:
        return plan.rounds

    def work(self, spec: Spec, plan: ShufflePlan | None) -> Sequence[Work]:
        rounds = self.sizes(spec)["rounds"] or 0 if plan is None else plan.rounds
        return (Work("[shuffle] rounds", "rounds of shuffling", rounds, RELAYS_MAX),)

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        plan: ShufflePlan = run.plan
        graph = run.spec.graph
        mean = 1.0 if graph.kind in _REGULAR and not graph.changing else float(max(1, degree))
        mean *= max(plan.rows or (1,))
        in_round = at_most(mean, EXCESS / (plan.n * max(1, plan.rounds)))
        marks = 2 * degree * plan.rounds * (1 if plan.slots is None else 1 + plan.slots)
        return VISIT_BYTES * plan.rounds * min(plan.reports, in_round) + MARK_BYTES * marks

    def analysis(self) -> ShuffleAnalysis:
        from p2pdp.protocols.shuffle.analysis.reports import ShuffleAnalysis, SingleAnalysis

        return SingleAnalysis() if self._single else ShuffleAnalysis()


def result_of(plan: ShufflePlan, numbers: Any) -> Any:
    """Return the curator's result for reports with one row of numbers each: their count, the estimate, its errors."""
    if plan.single:
        found = of_single(plan.randomizer, numbers, *dummies_in(plan, len(numbers)))
    else:
        found = of_all(plan.randomizer, numbers)
    return np.concatenate([[float(len(numbers))], found.value, found.standard_error])


def dummies_in(plan: ShufflePlan, reports: int) -> tuple[float, float]:
    """Return the expected number of dummies among the reports, and its variance."""
    mean, variance = plan.dummies
    return mean * reports / plan.n, variance


def is_report(plan: ShufflePlan, report: bytes) -> bool:
    try:
        plan.randomizer.decoded(report)
    except MalformedReport:
        return False
    return True


def slots_for(n: int, rounds: int, degree_min: int) -> int:
    """Return the number of slots per edge and round at which one run in a million delays a report for lack of room.

    A report takes a given edge of a place with a probability of pi / d, about 1/2|E|, at most 1/(n d_min) of it for
    each of n: loads of an edge are dominated by Poisson(1 / d_min) after mixing, and all n d_min edges times rounds
    have their chance. Before mixing there is one report per place.
    """
    mean, target = 1.0 / max(1, degree_min), 1e-6 / (max(1, n * degree_min) * rounds)
    term = np.exp(-mean)
    left, slots = 1.0 - term, 0
    while left > target and slots < 64:
        slots += 1
        term *= mean / slots
        left = max(0.0, left - term) if left > 1e-12 else term
    return max(1, slots)


def _fact(facts: Mapping[str, Fact], name: str) -> float:
    found = facts.get(name)
    if not isinstance(found, int | float):
        raise VerificationFailed(f"the roster lacks the fact {name}")
    return float(found)


def randomizer_of(spec: Spec, dimensions: int) -> Randomizer:
    """Return the randomizer that `[noise]`, `[task]` and `[data] clip` describe; a row has `dimensions` numbers."""
    noise = spec.noise
    if spec.task.kind == "histogram":
        assert spec.task.categories is not None
        return _of_categories(noise, spec.task.categories)
    if noise.mechanism == "privunit":
        assert noise.epsilon is not None
        return UnitReports(dimensions, noise.epsilon)
    assert spec.data.clip is not None
    return RealReports(
        Bounds(*spec.data.clip),
        dimensions,
        noise.mechanism,
        sigma=noise.sigma,
        epsilon=noise.epsilon,
        delta=noise.delta,
    )


def _of_categories(noise: NoisePart, categories: int) -> Randomizer:
    if noise.mechanism == "none":
        return KaryReports(categories, None)
    assert noise.epsilon is not None
    if noise.encoding == "unary":
        return UnaryReports(categories, noise.epsilon)
    if noise.encoding == "binary":
        return BinaryReports(categories, noise.epsilon)
    return KaryReports(categories, noise.epsilon)


def reported_values(plan: ShufflePlan, count: int, rows: Any) -> list[Any]:
    """Return the values that a user reports: of so many of its rows."""
    return [reported_value(plan.randomizer, rows[place : place + 1]) for place in range(count)]


def reported_value(randomizer: Randomizer, rows: Any) -> Any:
    """Return the value that a user reports of the first of these rows."""
    first = np.asarray(rows)[0]
    if isinstance(randomizer, RealReports):
        return np.asarray(first, dtype=np.float64).reshape(-1)
    if not isinstance(randomizer, UnitReports):
        return int(first)
    row = np.asarray(first, dtype=np.float64).reshape(-1)
    length = float(np.linalg.norm(row))
    if not length > 0.0:
        raise UsageError("[noise] mechanism: privunit reports directions, and this row of a user has none: it is 0.")
    return row / length


ALL: Final = NetworkShuffle("shuffle.all", single=False)

SINGLE: Final = NetworkShuffle("shuffle.single", single=True)
