"""`gossip.average`: every user comes near the mean of all values, by synchronous gossip (`gossiping.py`).

`rounds = "auto"` takes the paper's stopping time from public numbers only (`topology/gossip_rounds.py`). Who
publishes is in the spec: nobody, user 0 or all; a user's own result stays with it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms.clipping import Bounded
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, Quiet, Work
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.messages import ROUNDS
from p2pdp.protocols.gossip.options import OPTIONS, GossipPart
from p2pdp.protocols.gossip.plan import GossipPlan, check_gossip
from p2pdp.tasks.inputs import Inputs, RealInputs
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from p2pdp.topology.graphs import Graph
from p2pdp.topology.kinds import edge_probability

if TYPE_CHECKING:
    from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis


ROUNDS_MAX: Final = 20_000


class GossipAverage(Quiet):
    name = "gossip.average"
    tasks = averaging.TASKS
    messages = ROUNDS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return averaging.facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> GossipPlan:
        gossip: GossipPart = spec.options
        setting = averaging.setting_of(spec, dimensions)
        gap = averaging.fact(facts, "gap")
        rounds = gossip.rounds
        if not isinstance(rounds, int):
            rounds = rounds_needed(gap, n, setting.sigma, setting.span, dimensions, accelerated=gossip.accelerated)
        gamma = acceleration(gap) if gossip.accelerated else 1.0
        return GossipPlan(
            n=n,
            rounds=rounds,
            weights=averaging.weights_of(spec),
            degree_max=int(averaging.fact(facts, "degree_max")),
            gamma=gamma,
            coin=edge_probability(spec.graph, n) if spec.graph.changing else None,
            noise=setting.noise,
            message_noise=setting.message_noise,
            shape=setting.shape,
            grid_exponent=setting.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=gap,
            **setting.dithering(n, rounds, gamma),
        )

    def machine(self, plan: GossipPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Gossip:
        return Gossip(plan, user, neighbours, inputs)

    def inputs(self, plan: GossipPlan, rows: Bounded) -> tuple[Inputs, list[Any]]:
        return averaging.inputs_of(plan.shape, rows, Grid(plan.grid_exponent))

    def inputs_again(self, plan: GossipPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: GossipPlan, message: Message) -> str | None:
        return check_gossip(plan, message)

    def publish(self, plan: GossipPlan, totals: Sequence[Any]) -> Any:
        return averaging.publish(totals)

    def estimate(self, plan: GossipPlan, published: Any, contributions: int) -> Estimate:
        return averaging.estimate_of(plan.shape, published)

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        rounds = spec.options.rounds
        return {"rounds": rounds if isinstance(rounds, int) else None}

    def rounds(self, plan: GossipPlan) -> int:
        return plan.rounds

    def work(self, spec: Spec, plan: GossipPlan | None) -> Sequence[Work]:
        rounds = self.sizes(spec)["rounds"] or 0 if plan is None else plan.rounds
        return (Work("[gossip] rounds", "rounds of gossip in all", rounds, ROUNDS_MAX),)

    def analysis(self) -> GossipAnalysis:
        from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis

        return GossipAnalysis()


PROTOCOL = GossipAverage()
