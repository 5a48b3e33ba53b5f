"""Everything public that follows from a spec and the number of nodes that really take part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.protocols import protocol as find_protocol
from p2pdp.protocols.contract import Protocol
from p2pdp.topology.graphs import EdgeList, Graph, make_graph


@dataclass(frozen=True)
class RunPlan:
    spec: Spec
    n: int
    dimensions: int
    graph: Graph
    protocol: Protocol
    plan: Any

    @property
    def facts(self) -> Mapping[str, int | str | float]:
        """What bootstrap signs beside the keys: a budget's claim may rest on these."""
        return {"n": self.n, "graph": self.graph.digest.hex(), "dimensions": self.dimensions}

    def neighbours(self, user: Peer) -> Sequence[Peer] | None:
        """None stands for everybody, on a complete graph."""
        return None if self.spec.graph.kind == "complete" else self.graph.neighbours[user]


def plan_run(spec: Spec, n: int, dimensions: int, edges: EdgeList | None) -> RunPlan:
    """May raise `RunFailed` where the graph's kind has none for this n."""
    found = find_protocol(spec.run.protocol)
    plan = found.plan(spec, n, dimensions)
    graph = make_graph(spec.graph, n, spec.run.seed or 0, edges)
    return RunPlan(spec, n, dimensions, graph, found, plan)
