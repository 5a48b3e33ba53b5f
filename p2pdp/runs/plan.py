"""`plan`: what a run would cost, before anything starts: privacy beforehand (`audit.beforehand`) and `plan_costs`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.headline import verdict_of
from p2pdp.audit.tradeoff import Tradeoff, recommended
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.protocols.run_plan import plan_run
from p2pdp.report.documents import claim_document, plain, refusal_document, verdict_document
from p2pdp.runs.accountable import check_accountable
from p2pdp.runs.plan_costs import Costs, costs_of
from p2pdp.runs.target import Planned, Target, target_of


@dataclass(frozen=True, kw_only=True)
class Plan(Costs):
    """Fields are named as in `plan --json`; `target` is there only where it was asked for.

    `message_noise` is what noise on messages would buy (`gossip/analysis/message_noise.py`), of synchronous gossip;
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
