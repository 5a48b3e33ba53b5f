"""The cost of a run to the owner of a node, for each observer, before it takes part and afterwards.

Before: the bounds a priori that `plan` shows (`auditor.a_priori`), from the spec that is offered, and again from the
facts of the signed roster. What of these follows from the graph is computed again; where the graph cannot be made here,
no claim rests on bootstrap's statement of how reports mix. How many values other users have is in neither, so claims
that need it are not used. What an observer of all decrypted messages learns is bounded by what the node itself enforces
(`auditor.a_priori`).

After: from the node's own ledger, what its recorded contributions and draws tell an observer of all decrypted messages.
The other observers' rows stay a priori, since what they really saw depends on a route that a node does not know. Where
the ledger records an exclusion, rows that assumed there would be none fall back to what the ledger says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any, Final, Self

from p2pdp.auditor.a_priori import NO_SKELETON, claims_a_priori, enforced_limit, spent_in
from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.auditor.headline import DELTA_MAX, Bound, bounds_of, reading_of
from p2pdp.core.claims import Claim, Method, Observer, Unit
from p2pdp.core.errors import Refused, RunFailed, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.core.messages import OUT
from p2pdp.core.rows import ROWS, rows_text
from p2pdp.core.spec import Spec
from p2pdp.core.words import PROTECTIONS, observer_name
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.spec import spec_digest
from p2pdp.ledger.records import RECEIVED, Contents, public_message
from p2pdp.protocols.run_plan import OF_EVERY_RUN, RunPlan, plan_of_facts, plan_run
from p2pdp.replay.transcript import replay
from p2pdp.report.documents import plain
from p2pdp.topology.graphs import make_graph

CLASSES: Final[Mapping[str, tuple[Observer, ...]]] = {
    Observer.NODE: (Observer.NODE, Observer.CURATOR, Observer.PUBLIC),
    Observer.COALITION: (Observer.NODE, Observer.COALITION, Observer.CURATOR, Observer.PUBLIC),
    Observer.NETWORK: (Observer.NETWORK,),  # it sees what all others do
}
OTHERS_SKELETONS: Final = (
    "the curator's row holds if no user hands in a skeleton that the curator can read; the run names no auditor's key"
)
_FACTS_ALIKE: Final = 1e-6
_FACTOR_MAX: Final = 100.0
_YOURS: Final[Mapping[str, str]] = {Unit.USER: "your data", Unit.RECORD: "one row of yours"}


@dataclass(frozen=True, slots=True)
class Cost:
    """A bound on what one observer learns about this node's data. Epsilon is infinite where there is none."""

    observer: str
    epsilon: float
    delta: float
    conditioning: str | None
    method: str | None
    unit: str = Unit.USER

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(asdict(self))
        if self.unit == Unit.USER:
            del document["unit"]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{**document, "epsilon": float(document["epsilon"])})

    @property
    def text(self) -> str:
        """Return one line of the table."""
        if self.epsilon == math.inf:
            return (
                f"{observer_name(self.observer)}: epsilon is infinite, no protection: nothing limits what it may learn"
            )
        bound = f"{observer_name(self.observer)}: epsilon {self.epsilon:.4g} at delta {self.delta:g} ({self.method})"
        if self.delta > DELTA_MAX:
            return f"{bound}, no protection: with a chance of {self.delta:g} it may learn anything"
        if self.epsilon == 0.0:
            return f"{bound}, it learns nothing"
        times = f"{math.exp(self.epsilon):.3g}" if self.epsilon < _FACTOR_MAX else f"e^{self.epsilon:.4g}"
        reading = PROTECTIONS[reading_of(self.epsilon, self.delta)]
        return (
            f"{bound}, {reading}: what it sees is at most {times} times as likely under one value of "
            f"{_YOURS[self.unit]} as under another"
        )


def offered_run(spec: Spec, dimensions: int, rows: int | None = None) -> RunPlan | None:
    """Return the plan for all `nodes`, before any roster; None where it rests on signed facts about the graph.

    Where records are protected all users are taken to have as many `rows` as this one.
    """
    n = spec.run.nodes
    stated = None if rows is None or spec.privacy.unit != Unit.RECORD else (rows,) * n
    try:
        if spec.graph.kind != "file":
            return plan_run(spec, n, dimensions, rows=stated)
        facts: dict[str, Any] = {"n": n, "dimensions": dimensions, "sampler": spec.noise.sampler}
        return plan_of_facts(spec, facts if stated is None else {**facts, ROWS: rows_text(stated)})
    except (RunFailed, VerificationFailed):  # no such graph of n users, or its file is on bootstrap's machine
        return None


def signed_plan(spec: Spec, facts: Mapping[str, Any]) -> RunPlan:
    """Return the plan from the signed facts, with the graph if it can be made again and is the one that was signed.

    Facts that follow from that graph are taken as they are signed.
    """
    run = plan_of_facts(spec, facts)
    run = replace(run, graph_facts={name: fact for name, fact in facts.items() if name not in OF_EVERY_RUN})
    if spec.graph.kind == "file" or spec.graph.changing:
        return run
    graph = make_graph(spec.graph, run.n, spec.run.seed or 0)
    if graph.digest.hex() == facts.get("graph"):
        return replace(run, graph=graph)
    if spec.graph.kind in ("complete", "ring"):
        raise Refused(f"the graph that bootstrap signed is not the spec's, a {spec.graph.kind} of {run.n} users")
    return run


def signed_run(spec: Spec, facts: Mapping[str, Any]) -> RunPlan:
    """Return `signed_plan`, and refuse signed facts that the graph, where it can be made here, contradicts."""
    run = signed_plan(spec, facts)
    if run.graph is not None:
        for name, own in run.protocol.graph_facts(spec, run.graph).items():
            if not _is_alike(facts.get(name), own):
                raise Refused(f"the fact {name} that bootstrap signed is not that of the graph that it signed")
    return run


def _is_alike(signed: object, own: object) -> bool:
    """Compare facts; numbers that another machine worked out may differ in their last digits."""
    if not (isinstance(signed, int | float) and isinstance(own, int | float)):
        return signed == own
    return math.isclose(signed, own, rel_tol=_FACTS_ALIKE, abs_tol=_FACTS_ALIKE)


def terms_of(run: RunPlan) -> str:
    """Return a digest of all that the costs of a run follow from."""
    graph = None if run.graph is None else run.graph.digest.hex()
    facts = sorted(run.graph_facts.items())
    terms: list[Any] = [spec_digest(run.spec).hex(), run.n, run.dimensions, run.sampler, graph, facts]
    if run.rows is not None:
        terms.append(list(run.rows))
    return blake2b(json.dumps(terms).encode(), digest_size=32, person=b"p2pdp costs 1").hexdigest()


def costs_of(run: RunPlan, *, shares: bool = False) -> list[Cost]:
    """Return a row for each observer, those whom nobody has to trust first.

    With `shares` the node hands in its skeleton: where the curator can read that, no claim rests on its ignorance.
    """
    return [_row(bound) for bound in _bounds(run, shares=shares)]


def rests_on_others(spec: Spec, costs: Sequence[Cost]) -> bool:
    """Return whether the curator's row holds only if no other user hands in a skeleton that the curator can read."""
    hidden = (Method.HIDDEN_PATH, Method.SHUFFLE)
    return spec.audit.key is None and any(
        one.observer == Observer.CURATOR and one.method in hidden and one.epsilon > 0.0 for one in costs
    )


def _bounds(run: RunPlan, *, shares: bool) -> list[Bound]:
    delta = run.spec.privacy.delta
    assert delta is not None
    result = claims_a_priori(run, delta, run.spec.privacy.colluders, one_value=False)
    if run.graph is None:
        result.claims = run.protocol.analysis().without_graph(result.claims)
    if shares:
        result.claims = [claim for claim in result.claims if NO_SKELETON not in claim.assumptions]
    limit = enforced_limit(run, delta)
    bounds = bounds_of(result.claims, result.refusals, run.n, delta)
    if limit is None:
        return bounds
    return [
        Bound(Observer.NETWORK, limit.delta, (limit,)) if one.observer == Observer.NETWORK else one for one in bounds
    ]


def _row(bound: Bound) -> Cost:
    unit = Unit.USER if bound.claim is None else bound.claim.unit
    return Cost(bound.observer, bound.epsilon, bound.delta, bound.conditioning, bound.method, unit)


def check_epsilon(costs: Sequence[Cost], config: NodeConfig) -> None:
    """Refuse what would cost more than `[accept] epsilon_max` against the observers that it names."""
    accept, name = config.accept, f"{config.path} [accept]"
    if accept.epsilon_max is None:
        return
    counted = [one for one in costs if one.observer in CLASSES[accept.observer]]
    worst = max(counted, key=lambda one: one.epsilon)
    if worst.epsilon > accept.epsilon_max:
        actual = "an infinite epsilon" if worst.epsilon == math.inf else f"epsilon {worst.epsilon:.6g}"
        raise Refused(
            f"{name} epsilon_max: this run would cost {actual} at delta {worst.delta:g} against "
            f"{observer_name(worst.observer)}, and this node allows {accept.epsilon_max:g}"
        )


def spent_of(
    run: RunPlan, user: int, contents: Contents, costs: Sequence[Cost] | None = None, *, shares: bool = False
) -> list[Cost]:
    """Return the rows after the run, with what this user's own ledger says for an observer of all decrypted messages.

    `costs` are the rows from before, which stand where nobody was put out; without them they are computed again.
    """
    delta = run.spec.privacy.delta
    assert delta is not None
    made = replay(run, {user: contents}).own_noise[user]
    recorded = spent_in(run, user, made, delta)
    put_out = any(
        _tells_of_exclusion(record.body.sender, public_message(record).type) for record in _received(contents)
    )
    if costs is not None and not put_out:
        return [_recorded(one, recorded) if _is_from_ledger(one, recorded) else one for one in costs]
    return [_spent(bound, recorded, put_out=put_out) for bound in _bounds(run, shares=shares)]


def _spent(bound: Bound, recorded: Claim | None, *, put_out: bool) -> Cost:
    before, claim = _row(bound), bound.claim
    void = put_out and (claim is None or NOBODY_OUT in claim.assumptions)
    return _recorded(before, recorded) if void or _is_from_ledger(before, recorded) else before


def _is_from_ledger(before: Cost, recorded: Claim | None) -> bool:
    """Return whether the ledger says more than the earlier row: for all messages, and if the node told nothing."""
    return before.observer == Observer.NETWORK or (recorded is not None and recorded.epsilon_max == 0.0)


def _recorded(before: Cost, recorded: Claim | None) -> Cost:
    if recorded is None:
        return Cost(before.observer, math.inf, before.delta, None, None)
    epsilon = math.inf if recorded.epsilon_max is None else recorded.epsilon_max
    return Cost(before.observer, epsilon, recorded.delta, recorded.conditioning, recorded.method, recorded.unit)


def _received(contents: Contents) -> list[Any]:
    return [record for record in contents.records if record.kind == RECEIVED]


def _tells_of_exclusion(sender: int, type_: str) -> bool:
    return sender == BOOTSTRAP and type_ == OUT
