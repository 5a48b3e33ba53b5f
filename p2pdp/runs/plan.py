"""`plan`: the cost of a run before anything starts: privacy a priori, error, messages, bytes and time.

The costs follow from the plan alone. The error does not depend on data (for histograms: as if all categories were
equally frequent), users contribute equally often, and nothing is lost. The protocol's analysis says how the error
follows from the plan, and how many messages users send.

* `messages` counts what a run counts: what users send each other, what is handed in at the end, and three messages a
  user for getting ready, starting and the result.
* `bytes` counts the frames of these and of enrolment; acknowledgements that travel alone come on top.
* `seconds` is `HOP_S` a hop or exchange, as among processes of one machine. Across machines, add the network's delay.

`plan` and a node refuse runs whose costs would take too long to compute in advance; those that they allow take minutes
at most on one machine. These are no limits of runs: a local run may be larger.

`plan --target-epsilon` searches for the least noise at which one other user learns no more than this epsilon. The bound
is the best sound a-priori claim that covers one other node. In network shuffling, which mainly hides users from the
curator, it is the larger one of that and of the best claim that covers the curator. It falls as noise grows, and for
Gaussian noise its mu is nearly proportional to 1/sigma, so each guess follows from the one before, inside an interval
of which one end is known to be enough and the other not. The answer is the least amount known to be enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import ENVELOPE_BYTES, Number
from p2pdp.auditor.a_priori import Tradeoff, claims_a_priori, epsilon_against, recommended
from p2pdp.auditor.claims import Cost, cost_of, left_of
from p2pdp.auditor.headline import verdict_of
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.spec import spec_to_toml
from p2pdp.files.tables import read_edge_list
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.documents import claim_document, plain, refusal_document, verdict_document
from p2pdp.report.result import Level, compared
from p2pdp.runs.prepared import sensitivity
from p2pdp.topology.graphs import EdgeList
from p2pdp.wire.padding import frame_size

HOP_S: Final = 1e-4
_SMALL_FRAMES: Final = 10  # frames of each user, until it is ready and after the result
_ROSTER_BYTES: Final = 128  # bytes of each user, and of five more for the rest


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
        messages=round(moves) + analysis.handed_in(run) + 3 * run.n + 4 + len(run.plan.starts),
        bytes=_bytes(run, moves),
        seconds=(moves if run.completes_per_user else length) * HOP_S,
    )


def _bytes(run: RunPlan, moves: float) -> int:
    sent, result = run.protocol.analysis().bytes_sent(run, moves)
    small = frame_size(ENVELOPE_BYTES)
    offer = frame_size(ENVELOPE_BYTES + len(spec_to_toml(run.spec).encode()))
    roster = frame_size(ENVELOPE_BYTES + _ROSTER_BYTES * (run.n + 5))
    return round(sent) + run.n * (_SMALL_FRAMES * small + offer + roster + result - small)


@dataclass(frozen=True, kw_only=True)
class Plan(Costs):
    """The plan of a run, with fields named as in `plan --json`; `target` is there only where it was asked for.

    `message_noise` states what noise on messages would buy (`gossip/analysis/forecast.py`) in synchronous gossip;
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
        flat: dict[str, Any] = plain(document)
        return flat


def plan_spec(spec: Spec, target_epsilon: float | None) -> Plan:
    """Plan a run; read data and edge list for their sizes only."""
    check_accountable(spec)
    planned = planned_of(spec)
    run = planned.run
    check_accountable(spec, run.plan)
    delta = spec.privacy.delta
    assert delta is not None
    target = None if target_epsilon is None else target_of(planned, target_epsilon)
    result = claims_a_priori(run, delta, spec.privacy.colluders, one_value=planned.one_value)
    analysis = run.protocol.analysis()
    result.add(analysis.forecast(run, delta))
    verdict = verdict_of(result.claims, result.refusals, run.n, delta)
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
    """Refuse what takes too long to compute; with the plan, also by what follows from the graph."""
    _check("[run] nodes", "users", spec.run.nodes, USERS_MAX)
    for work in protocol(spec.run.protocol).work(spec, plan):
        _check(work.key, work.what, work.actual, work.most)


def _check(name: str, what: str, actual: int, most: int) -> None:
    if actual > most:
        raise Refused(
            f"{name}: this run has {actual:,} {what}, and what a run costs is computed for at most {most:,} of them"
        )


_EPSILON_MAX: Final = 1e4
_FINE: Final = 1.0 + 1e-3
_TRIES_MAX: Final = 60
_SIGMAS: Final = (1e-6, 1e9)  # the range of the search, in sensitivities
_LEFT_MIN: Final = 1e-9
_REPORTS: Final = (1.0 / 700.0, 1e9)  # 1/epsilon of a report


@dataclass(frozen=True)
class Planned:
    """A run before it takes place; `one_value` if every user has one value only."""

    run: RunPlan
    edges: EdgeList | None
    one_value: bool


@dataclass(frozen=True)
class Target:
    """The noise that meets a target: `parameter` of `[noise]` has to be `value`, which gives the bound `reached`.

    Local differential privacy would need `local_value`. The bound is about `observers`.
    """

    epsilon: float
    delta: float
    parameter: str
    value: float
    reached: float
    local_value: float
    observers: tuple[Observer, ...]

    @property
    def against(self) -> str:
        return _words(self.observers)


def target_of(planned: Planned, epsilon: float) -> Target:
    if not 0.0 < epsilon <= _EPSILON_MAX:
        raise UsageError(f"--target-epsilon: must be a number above 0, and at most {_EPSILON_MAX:g}")
    spec = planned.run.spec
    delta, mechanism = spec.privacy.delta, spec.noise.mechanism
    assert delta is not None
    if mechanism == "none":
        raise Refused('--target-epsilon: [noise] mechanism = "none" protects nobody, however little is asked for')
    search = _Search(planned, epsilon, delta)
    strength, reached = search.least()
    run = planned.run
    each = run.protocol.analysis().contributions_each(run)
    value, local = search.value(strength), search.value(search.local(each))
    return Target(epsilon, delta, search.parameter, value, reached, local, observers_of(run))


def _words(observers: tuple[Observer, ...]) -> str:
    return "one other user or the curator" if Observer.CURATOR in observers else "one other user"


def observers_of(run: RunPlan) -> tuple[Observer, ...]:
    return run.protocol.analysis().target_observers


class _Search:
    """A search over `strength`, which grows with noise: sigma over the sensitivity, or 1 over a report's epsilon."""

    def __init__(self, planned: Planned, epsilon: float, delta: float) -> None:
        self._planned, self._epsilon, self._delta = planned, epsilon, delta
        spec = planned.run.spec
        self._floor = cost_of(spec) or Cost(0.0, 0.0)  # what no noise of the run takes away
        self._left = max(epsilon - self._floor.epsilon, _LEFT_MIN)
        self._best = math.inf
        self._reports = spec.noise.mechanism in ("randomized_response", "privunit")
        self._ends = _REPORTS if self._reports else _SIGMAS
        self._unit = planned.run.protocol.analysis().reach(planned.run)
        self.parameter = "epsilon" if self._reports else "sigma"

    def value(self, strength: float) -> float:
        return 1.0 / strength if self._reports else strength * self._unit

    def local(self, each: int) -> float:
        """Return the noise needed if every contribution is seen with its own noise, and users make `each` of them."""
        spec = self._planned.run.spec
        if self._reports:
            return each / self._left
        if spec.noise.mechanism == "gaussian":
            return math.sqrt(each) / gaussian.mu_of_curve(self._left, left_of(self._delta, self._floor))
        assert spec.data.clip is not None
        span = self._planned.run.dimensions * float(Bounds(*spec.data.clip).span)
        return math.sqrt(2.0) * laplace.scale_of_epsilon(self._left, each * span) / self._unit

    def _bound(self, strength: float) -> float:
        """Return the best bound of one other node with so much noise; infinite where that cannot be run."""
        planned, run = self._planned, self._planned.run
        value = self.value(strength)
        sigma, epsilon = (None, value) if self._reports else (value, None)
        noise = replace(run.spec.noise, sigma=sigma, epsilon=epsilon, delta=None)
        try:
            again = self._again(replace(run.spec, noise=noise))
            bound = epsilon_against(observers_of(run), again, self._delta, one_value=planned.one_value)
        except UsageError as error:
            smallest = f"; the smallest bound that was found is {self._best:.6g}" if self._best < math.inf else ""
            raise Refused(
                f"--target-epsilon {self._epsilon:g}: cannot be met, for [noise] {self.parameter} = "
                f"{self.value(strength):.6g} cannot be run: {error}{smallest}"
            ) from None
        self._best = min(self._best, bound)
        return bound

    def _again(self, spec: Spec) -> RunPlan:
        """Plan the same run with other noise. How reports walk does not depend on it, and is worked out once."""
        run = self._planned.run
        if run.protocol.analysis().facts_follow_noise:
            return plan_run(spec, run.n, run.dimensions, self._planned.edges)
        return replace(run, spec=spec, plan=run.protocol.plan(spec, run.n, run.dimensions, run.graph_facts))

    def least(self) -> tuple[float, float]:
        least, most = self._ends
        if self._epsilon < self._floor.epsilon:
            raise Refused(
                f"--target-epsilon {self._epsilon:g}: cannot be met; the smallest that can be reached is "
                f"{self._floor.epsilon:g}, which the estimates cost by which columns are standardized"
            )
        strength = min(max(self.local(1), least), most)
        low, high, reached = 0.0, math.inf, math.inf
        for _ in range(_TRIES_MAX):
            bound = self._bound(strength)
            if bound <= self._epsilon:
                high, reached = strength, bound
            else:
                low = strength
                if strength >= most:
                    raise Refused(self._why_not(bound))
            if high <= max(low * _FINE, least) or (high < math.inf and reached >= self._epsilon / _FINE):
                break
            strength = min(max(self._guess(strength, bound, low, high), least), most)
        if high == math.inf:
            raise Refused(self._why_not(self._bound(most)))
        return high, reached

    def _guess(self, strength: float, bound: float, low: float, high: float) -> float:
        """Guess in proportion, a little beyond; halfway (of the logarithm) where that leaves the interval."""
        if bound < math.inf:
            guess = strength * self._size(bound) / self._size(self._epsilon) * (1.0 + (_FINE - 1.0) / 2.0)
            if low < guess < high:
                return guess
        if high == math.inf:
            return 2.0 * low if bound < math.inf else self._ends[1]
        return math.sqrt(low * high) if low > 0.0 else high / 2.0

    def _size(self, epsilon: float) -> float:
        """Return a number that is about proportional to 1 / strength."""
        left = epsilon - self._floor.epsilon
        if self._reports or left <= 0.0:
            return max(left, self._left / 8.0)
        return gaussian.mu_of_curve(left, left_of(self._delta, self._floor))

    def _why_not(self, bound: float) -> str:
        shown = "infinite" if bound == math.inf else f"{bound:.6g}"
        why = ": some contribution reaches another user without any noise" if bound == math.inf else ""
        return (
            f"--target-epsilon {self._epsilon:g}: cannot be met; with [noise] {self.parameter} = "
            f"{self.value(self._ends[1]):.6g} the bound for {_words(observers_of(self._planned.run))} is still {shown} "
            f"at delta {self._delta:g}, the smallest that can be reached{why}"
        )
