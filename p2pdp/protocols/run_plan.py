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
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from typing import Protocol as Interface

from p2pdp.core.claims import Protected, Unit
from p2pdp.core.draws import Draws
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.core.events import Machine
from p2pdp.core.ids import Peer
from p2pdp.core.messages import FINISHED, TOTAL
from p2pdp.core.rows import ROWS, ROWS_MAX, Rows, rows_in, rows_text
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.protocols import protocol as find_protocol
from p2pdp.protocols.contract import Fact, Protocol
from p2pdp.protocols.decision import Collector
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.inputs import Inputs
from p2pdp.topology.graphs import EdgeList, Graph, complete_graph, make_graph

OF_EVERY_RUN: Final = ("n", "graph", "dimensions", "sampler", ROWS)  # facts that do not follow from the protocol


@dataclass(frozen=True)
class RunPlan:
    """The plan of one run.

    `graph` is None for auditors: a replay needs only each user's neighbours, from its ledger. `rows` is how many rows
    each user has stated, where the unit is a record; None before anybody has.
    """

    spec: Spec
    n: int
    dimensions: int
    protocol: Protocol
    plan: Any
    sampler: str  # the source of noise: exact, fast, or seeded in a simulation
    graph: Graph | None = None
    rows: Rows | None = None
    graph_facts: Mapping[str, Fact] = field(default_factory=dict)
    public: Examples | None = field(default=None, repr=False)  # public rows, for whoever scores models

    @property
    def facts(self) -> Mapping[str, int | str | float]:
        """Return the facts that bootstrap signs besides the keys: claims may rest on these."""
        if self.graph is None:
            raise Refused("it follows from the graph, which is not known here")
        digest = "changing" if self.spec.graph.changing else self.graph.digest.hex()
        named: dict[str, Fact] = {"n": self.n, "graph": digest, "dimensions": self.dimensions, "sampler": self.sampler}
        if self.rows is not None:
            named[ROWS] = rows_text(self.rows)
        return named | dict(self.graph_facts)

    def with_spec(self, spec: Spec, graph_facts: Mapping[str, Fact]) -> RunPlan:
        """Return the plan of another spec for the same users on the same graph."""
        facts = dict(graph_facts) if self.rows is None else {**graph_facts, ROWS: rows_text(self.rows)}
        plan = self.protocol.plan(spec, self.n, self.dimensions, facts)
        return replace(self, spec=spec, plan=plan, graph_facts=graph_facts)

    @property
    def protected(self) -> Protected:
        """Return what claims about this run protect, unless one says otherwise."""
        return Protected(self.spec.privacy.unit)

    @property
    def by_record(self) -> bool:
        """Return whether each single row is protected, and what a user contributes is made of all of its rows."""
        return self.spec.privacy.unit == Unit.RECORD

    @property
    def completes_per_user(self) -> bool:
        """Return whether each user reports its own end; otherwise an item ends when its total reaches the curator."""
        return not self.plan.starts

    @property
    def handed_in(self) -> str:
        """Return the type of the message by which what the curator waits for reaches it; it refuses the other one."""
        return FINISHED if self.completes_per_user else TOTAL

    @property
    def exchanges(self) -> int:
        """Estimate the number of messages between users."""
        assert self.graph is not None
        return int(self.plan.exchanges(self.graph.edge_count))

    def collector(self) -> Collector | None:
        """Return a new one for the curator, or for a replay of it; None for protocols without."""
        return self.protocol.collector(self.plan)

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


class Planner(Interface):
    """Plans a run for so many users, with the rows that each has stated where the unit is a record."""

    def __call__(self, n: int, rows: Rows | None = None, /) -> RunPlan: ...


def plan_run(
    spec: Spec,
    n: int,
    dimensions: int,
    edges: EdgeList | None = None,
    *,
    rows: Rows | None = None,
    sampler: str | None = None,
) -> RunPlan:
    """Plan a run; raise `RunFailed` if the kind of graph has none for this n."""
    found = find_protocol(spec.run.protocol)
    changing = spec.graph.changing  # then everybody may meet everybody, and nobody knows the graphs
    graph = complete_graph(n) if changing else make_graph(spec.graph, n, spec.run.seed or 0, edges)
    facts = {**found.graph_facts(spec, graph), **found.model_facts(spec, dimensions)}
    known = facts if rows is None else {**facts, ROWS: rows_text(rows)}
    plan = found.plan(spec, n, dimensions, known)
    return RunPlan(spec, n, dimensions, found, plan, sampler or spec.noise.sampler, graph, rows, facts)


_STEPS: Final[list[int]] = [step * 10**power for power in range(10) for step in (1, 2, 5)]
_LIMITS: Final[list[int]] = [step for step in _STEPS if step <= ROWS_MAX]


def rows_limit(plan: Planner, n: int) -> int:
    """Return how many rows each of n users may state, of some round numbers, such that the run can still be planned."""

    def fails(most: int) -> bool:
        try:
            plan(n, (most,) * n)
        except UsageError:
            return True
        return False

    return max(1, *_LIMITS[: bisect_left(_LIMITS, True, key=fails)])


def plan_of_facts(spec: Spec, facts: Mapping[str, int | str | float]) -> RunPlan:
    """Return the plan that an auditor needs, from the facts that bootstrap signed."""
    n, dimensions, sampler = facts.get("n"), facts.get("dimensions"), facts.get("sampler")
    if not (isinstance(n, int) and isinstance(dimensions, int) and isinstance(sampler, str)):
        raise VerificationFailed("the roster lacks the facts n, dimensions and sampler")
    found = find_protocol(spec.run.protocol)
    rows = stated_rows(facts, n)
    return RunPlan(spec, n, dimensions, found, found.plan(spec, n, dimensions, facts), sampler, rows=rows)


def stated_rows(facts: Mapping[str, Fact], n: int) -> Rows | None:
    """Return how many rows each of n users has stated, as signed; None where no number was asked for."""
    try:
        rows = rows_in(facts)
    except ValueError as error:
        raise VerificationFailed(str(error)) from None
    if rows is not None and len(rows) != n:
        raise VerificationFailed(f"the fact rows is about {len(rows)} users, and the run has {n}")
    return rows


EXCESS: Final = 1e-15
_UNIT: Final = 4096  # sizes are multiples of this
_LIFE_BYTES: Final = 8192  # records other than visits, reports and marks
VISIT_BYTES: Final = 388
MARK_BYTES: Final = 96  # half of them are received, with a voucher
_LINK_BYTES: Final = 32  # an acknowledgement in the closing record


def skeleton_size(run: RunPlan, degree: int) -> int:
    """Return the padded size in bytes for a user with this many neighbours."""
    links_bytes = _LINK_BYTES * (degree + 2)  # bootstrap and curator too
    return -(-(_LIFE_BYTES + links_bytes + run.protocol.records_bytes(run, degree)) // _UNIT) * _UNIT


def at_most(mean: float, probability: float) -> int:
    """Return a count that a sum of independent indicators with this mean exceeds with at most this probability."""
    count = math.ceil(mean) + 1
    while count - mean - count * math.log(count / mean) > math.log(probability):
        count += 1
    return count
