"""The plan of a run: everything public that follows from a spec and the number of nodes that really take part.

This includes the size to which a user's skeleton is padded before it is sealed to the auditor. The number of records
of a skeleton reveals how often its user was visited, or how many reports it passed on, which the curator must not
learn. So the size depends only on what bootstrap knows anyway: the plan and the user's number of neighbours. It has
room for a count that all users together exceed with a probability of at most `EXCESS`:

* on a ring the schedule fixes the count, and gossip follows a schedule that bootstrap knows;
* visits of a random walk on the complete graph are independent draws, each with probability 1/n;
* in each round of shuffling reports are at independent places, and the mean of those at one user is 1 on a regular
  graph and at most its number of neighbours on any other. Chernoff's bound serves both.

On other graphs the visits of a walk depend on each other, so there the bound is a heuristic. If a skeleton does not
fit, its size doubles; the auditor sees that, and then refuses claims that rest on a hidden count.
"""

from __future__ import annotations

import math
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
    """The plan of one run.

    `graph` is None for auditors: a replay needs only each user's neighbours, from its ledger.
    """

    spec: Spec
    n: int
    dimensions: int
    protocol: Protocol
    plan: Any
    sampler: str  # the source of noise: exact, fast, or seeded in a simulation
    graph: Graph | None = None
    graph_facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[str, int | str | float]:
        """Return the facts that bootstrap signs besides the keys: claims may rest on these."""
        assert self.graph is not None
        digest = "changing" if self.spec.graph.changing else self.graph.digest.hex()
        named: dict[str, Fact] = {"n": self.n, "graph": digest, "dimensions": self.dimensions, "sampler": self.sampler}
        return named | dict(self.graph_facts)

    @property
    def completes_per_user(self) -> bool:
        """Return whether each user reports its own end; otherwise an item ends when its total reaches the curator."""
        return not self.plan.starts

    @property
    def exchanges(self) -> int:
        """Estimate the number of messages between users."""
        assert self.graph is not None
        return int(self.plan.exchanges(self.graph.edge_count))

    def opening(self, draws: Draws) -> Sequence[Send]:
        assert self.graph is not None
        return self.protocol.opening(self.plan, self.graph, draws)

    def machine(self, user: Peer, neighbours: Sequence[Peer] | None, inputs: Inputs) -> Machine:
        """Return a user's machine; `neighbours` is None for everybody, on a complete graph."""
        known = complete_graph(self.n).neighbours[user] if neighbours is None else neighbours
        return self.protocol.machine(self.plan, user, known, inputs)

    def check(self, message: Message) -> str | None:
        """Return the kind of fault of a message that a peer sent, or None if it is valid."""
        return self.protocol.messages.problem(message) or self.protocol.check(self.plan, message)

    def neighbours(self, user: Peer) -> Sequence[Peer] | None:
        """Return a user's neighbours; None stands for everybody, on a complete graph."""
        assert self.graph is not None
        everybody = self.spec.graph.kind == "complete" or self.spec.graph.changing
        return None if everybody else self.graph.neighbours[user]


def plan_run(
    spec: Spec, n: int, dimensions: int, edges: EdgeList | None = None, *, sampler: str | None = None
) -> RunPlan:
    """Plan a run; raise `RunFailed` if the kind of graph has none for this n."""
    found = find_protocol(spec.run.protocol)
    changing = spec.graph.changing  # then everybody may meet everybody, and nobody knows the graphs
    graph = complete_graph(n) if changing else make_graph(spec.graph, n, spec.run.seed or 0, edges)
    facts = found.graph_facts(spec, graph)
    plan = found.plan(spec, n, dimensions, facts)
    return RunPlan(spec, n, dimensions, found, plan, sampler or spec.noise.sampler, graph, facts)


def plan_of_facts(spec: Spec, facts: Mapping[str, int | str | float]) -> RunPlan:
    """Return the plan that an auditor needs, from the facts that bootstrap signed."""
    n, dimensions, sampler = facts.get("n"), facts.get("dimensions"), facts.get("sampler")
    if not (isinstance(n, int) and isinstance(dimensions, int) and isinstance(sampler, str)):
        raise VerificationFailed("the roster lacks the facts n, dimensions and sampler")
    found = find_protocol(spec.run.protocol)
    return RunPlan(spec, n, dimensions, found, found.plan(spec, n, dimensions, facts), sampler)


EXCESS: Final = 1e-15
_UNIT: Final = 4096  # sizes are multiples of this
_LIFE_BYTES: Final = 8192  # records other than visits, reports and marks
VISIT_BYTES: Final = 360
MARK_BYTES: Final = 80


def skeleton_size(run: RunPlan, degree: int) -> int:
    """Return the padded size in bytes for a user with this many neighbours."""
    return -(-(_LIFE_BYTES + run.protocol.records_bytes(run, degree)) // _UNIT) * _UNIT


def at_most(mean: float, probability: float) -> int:
    """Return a count that a sum of independent indicators with this mean exceeds with at most this probability."""
    count = math.ceil(mean) + 1
    while count - mean - count * math.log(count / mean) > math.log(probability):
        count += 1
    return count
