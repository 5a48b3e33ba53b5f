"""`gossip.randomized`: every user comes near the mean of all values, by pairs that meet at random (`pairing.py`).

Bootstrap draws the activations when the run begins, in proportion to the weights of the edges, and tells each
user its own. So it knows who meets whom and when, as it knows the graph, and no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import Draws
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.mechanisms.clipping import Bounded
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, Quiet, Work
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.messages import PAIRS
from p2pdp.protocols.gossip.options import OPTIONS, GossipPart
from p2pdp.protocols.gossip.pairing import (
    Pairing,
    PairPlan,
    activation_messages,
    check_pairing,
    draw_activations,
)
from p2pdp.tasks.inputs import Inputs, RealInputs
from p2pdp.topology.graphs import Graph
from p2pdp.topology.weights import edge_weight

if TYPE_CHECKING:
    from p2pdp.protocols.gossip.analysis.averages import PairAnalysis


ACTIVATIONS_MAX: Final = 200_000


class GossipRandomized(Quiet):
    name = "gossip.randomized"
    tasks = averaging.TASKS
    messages = PAIRS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return averaging.facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> PairPlan:
        gossip: GossipPart = spec.options
        assert gossip.activations is not None
        setting = averaging.setting_of(spec, dimensions)
        return PairPlan(
            n=n,
            activations=gossip.activations,
            weights=averaging.weights_of(spec),
            degree_max=int(averaging.fact(facts, "degree_max")),
            noise=setting.noise,
            message_noise=setting.message_noise,
            shape=setting.shape,
            grid_exponent=setting.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=averaging.fact(facts, "gap"),
            **setting.dithering(n, gossip.activations),
        )

    def opening(self, plan: PairPlan, graph: Graph, draws: Draws) -> Sequence[Send]:
        edges = list(graph.edges())
        if not edges:  # a single user meets nobody
            return [Send(0, message) for message in activation_messages([], 1)[0]]
        degrees = [graph.degree(user) for user in range(graph.n)]
        intensities = [edge_weight(plan.weights, degrees[u], degrees[v], plan.degree_max) for u, v in edges]
        drawn = draw_activations(edges, intensities, plan.activations, draws)
        told = activation_messages(drawn, plan.n)
        return [Send(user, message) for user, mine in enumerate(told) for message in mine]

    def machine(self, plan: PairPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Pairing:
        return Pairing(plan, user, neighbours, inputs)

    def inputs(self, plan: PairPlan, rows: Bounded) -> tuple[Inputs, list[Any]]:
        return averaging.inputs_of(plan.shape, rows, Grid(plan.grid_exponent))

    def inputs_again(self, plan: PairPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: PairPlan, message: Message) -> str | None:
        return check_pairing(plan, message)

    def publish(self, plan: PairPlan, totals: Sequence[Any]) -> Any:
        return averaging.publish(totals)

    def estimate(self, plan: PairPlan, published: Any, contributions: int) -> Estimate:
        return averaging.estimate_of(plan.shape, published)

    def work(self, spec: Spec, plan: PairPlan | None) -> Sequence[Work]:
        return (Work("[gossip] activations", "activations", spec.options.activations or 0, ACTIVATIONS_MAX),)

    def analysis(self) -> PairAnalysis:
        from p2pdp.protocols.gossip.analysis.averages import PairAnalysis

        return PairAnalysis()


PROTOCOL = GossipRandomized()
