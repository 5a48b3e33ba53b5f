"""Everything public that follows from a spec and the number of nodes that really take part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from p2pdp.core.draws import Draws
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.events import Machine
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.protocols import protocol as find_protocol
from p2pdp.protocols.contract import Fact, Protocol
from p2pdp.tasks.inputs import Inputs
from p2pdp.topology.graphs import EdgeList, Graph, complete_graph, make_graph

OF_EVERY_RUN: Final = ("n", "graph", "dimensions", "sampler")  # facts that do not follow from the protocol


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
    graph_facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[str, int | str | float]:
        """What bootstrap signs beside the keys: claims may rest on these."""
        assert self.graph is not None
        digest = "changing" if self.spec.graph.changing else self.graph.digest.hex()
        named: dict[str, Fact] = {"n": self.n, "graph": digest, "dimensions": self.dimensions, "sampler": self.sampler}
        return named | dict(self.graph_facts)

    @property
    def finishes_one_by_one(self) -> bool:
        """Whether each user says when it has finished; else items do, when their totals reach the curator."""
        return not self.plan.starts

    @property
    def exchanges(self) -> int:
        """About how many messages between users this takes."""
        assert self.graph is not None
        return int(self.plan.exchanges(self.graph.edge_count))

    def opening(self, draws: Draws) -> Sequence[Send]:
        assert self.graph is not None
        return self.protocol.opening(self.plan, self.graph, draws)

    def machine(self, user: Peer, neighbours: Sequence[Peer] | None, inputs: Inputs) -> Machine:
        """A user's machine; None stands for everybody, on a complete graph."""
        known = complete_graph(self.n).neighbours[user] if neighbours is None else neighbours
        return self.protocol.machine(self.plan, user, known, inputs)

    def check(self, message: Message) -> str | None:
        """Return what is wrong with a message that a peer sent, as the kind of a fault; None if nothing is."""
        return self.protocol.messages.problem(message) or self.protocol.check(self.plan, message)

    def neighbours(self, user: Peer) -> Sequence[Peer] | None:
        """None stands for everybody, on a complete graph."""
        assert self.graph is not None
        everybody = self.spec.graph.kind == "complete" or self.spec.graph.changing
        return None if everybody else self.graph.neighbours[user]


def plan_run(
    spec: Spec, n: int, dimensions: int, edges: EdgeList | None = None, *, sampler: str | None = None
) -> RunPlan:
    """May raise `RunFailed` where the graph's kind has none for this n."""
    found = find_protocol(spec.run.protocol)
    changing = spec.graph.changing  # then everybody may meet everybody, and nobody knows the graphs
    graph = complete_graph(n) if changing else make_graph(spec.graph, n, spec.run.seed or 0, edges)
    facts = found.graph_facts(spec, graph)
    plan = found.plan(spec, n, dimensions, facts)
    return RunPlan(spec, n, dimensions, found, plan, sampler or spec.noise.sampler, graph, facts)


def plan_of_facts(spec: Spec, facts: Mapping[str, int | str | float]) -> RunPlan:
    """The plan that an auditor needs, from the facts that bootstrap signed."""
    n, dimensions, sampler = facts.get("n"), facts.get("dimensions"), facts.get("sampler")
    if not (isinstance(n, int) and isinstance(dimensions, int) and isinstance(sampler, str)):
        raise VerificationFailed("the roster lacks the facts n, dimensions and sampler")
    found = find_protocol(spec.run.protocol)
    return RunPlan(spec, n, dimensions, found, found.plan(spec, n, dimensions, facts), sampler)
