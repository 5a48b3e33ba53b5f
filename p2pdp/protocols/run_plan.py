"""Everything public that follows from a spec and the number of nodes that really take part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.protocols import protocol as find_protocol
from p2pdp.protocols.contract import Protocol
from p2pdp.topology.graphs import EdgeList, Graph, make_graph


@dataclass(frozen=True)
class RunPlan:
    """`graph` is None for auditors: a replay needs each user's own neighbours only, from its ledger."""

    spec: Spec
    n: int
    dimensions: int
    protocol: Protocol
    plan: Any
    sampler: str  # where noise comes from: exact, fast, or seeded in a simulation
    graph: Graph | None = None

    @property
    def facts(self) -> Mapping[str, int | str | float]:
        """What bootstrap signs beside the keys: claims may rest on these."""
        assert self.graph is not None
        digest = self.graph.digest.hex()
        return {"n": self.n, "graph": digest, "dimensions": self.dimensions, "sampler": self.sampler}

    def neighbours(self, user: Peer) -> Sequence[Peer] | None:
        """None stands for everybody, on a complete graph."""
        assert self.graph is not None
        return None if self.spec.graph.kind == "complete" else self.graph.neighbours[user]


def plan_run(
    spec: Spec, n: int, dimensions: int, edges: EdgeList | None = None, *, sampler: str | None = None
) -> RunPlan:
    """May raise `RunFailed` where the graph's kind has none for this n."""
    found = find_protocol(spec.run.protocol)
    plan = found.plan(spec, n, dimensions)
    graph = make_graph(spec.graph, n, spec.run.seed or 0, edges)
    return RunPlan(spec, n, dimensions, found, plan, sampler or spec.noise.sampler, graph)


def plan_of_facts(spec: Spec, facts: Mapping[str, int | str | float]) -> RunPlan:
    """The plan that an auditor needs, from the facts that bootstrap signed."""
    n, dimensions, sampler = facts.get("n"), facts.get("dimensions"), facts.get("sampler")
    if not (isinstance(n, int) and isinstance(dimensions, int) and isinstance(sampler, str)):
        raise VerificationFailed("the roster lacks the facts n, dimensions and sampler")
    found = find_protocol(spec.run.protocol)
    return RunPlan(spec, n, dimensions, found, found.plan(spec, n, dimensions), sampler)
