"""Averaging by gossip, `gossip.average` and `gossip.randomized`: inputs, noise, and published results.

States are floats in data units. Noise is drawn in whole steps of a grid, by the same exact samplers as for
walks, and multiplied by the step, a power of two. The noised value is rounded to that grid first, or its lowest
bits would be seen beside the noise. The sums of gossip are then floats on a finer grid, and messages of them are
dithered (`dithering.py`).

`gossip.average`: every user comes near the mean of all values, by synchronous gossip (`gossiping.py`).
`rounds = "auto"` takes the paper's stopping time from public numbers only (`topology/gossip_rounds.py`). Who
publishes is in the spec: nobody, user 0 or all; a user's own result stays with it otherwise.

`gossip.randomized`: every user comes near the mean of all values, by pairs that meet at random (`pairing.py`).
Bootstrap draws the activations when the run begins, in proportion to the weights of the edges, and tells each
user its own. So it knows all meetings and their order, as it knows the graph, and no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import NO_NOISE, Draws, Mechanism, Shape
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.mechanisms import laplace
from p2pdp.mechanisms.clipping import Bounded, Bounds
from p2pdp.mechanisms.grid import NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, ProtocolDefaults, Work
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.options import OPTIONS, GossipPart
from p2pdp.protocols.gossip.pairing import (
    Pairing,
    PairPlan,
    activation_messages,
    check_pairing,
    draw_activations,
)
from p2pdp.protocols.gossip.plan import PAIRS, ROUNDS, GossipPlan, check_gossip
from p2pdp.protocols.noise import sigma_of
from p2pdp.tasks.inputs import Inputs, RealInputs
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from p2pdp.topology.graphs import Graph
from p2pdp.topology.kinds import edge_probability
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, check_convergence, edge_weight, largest_degree, sparse_weights

if TYPE_CHECKING:
    from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, PairAnalysis

TASKS: Final = {"mean": ("gaussian", "laplace", "none")}


@dataclass(frozen=True, slots=True)
class Setting:
    """The noise and shape of an averaging run."""

    noise: Mechanism
    message_noise: Mechanism | None
    shape: Shape
    grid_exponent: int
    sigma: float
    message_sigma: float
    span: float
    reach: float  # the largest absolute value

    def dithering(self, n: int, rounds: int, gamma: float = 1.0) -> dict[str, Any]:
        """Return the plan's fields that describe its dither."""
        return Reach(self.reach, self.sigma, self.message_sigma, rounds, n, gamma).dithering(self.noise)


def setting_of(spec: Spec, dimensions: int) -> Setting:
    assert spec.data.clip is not None
    bounds = Bounds(*spec.data.clip)
    sigma = sigma_of(spec.noise, bounds, dimensions)
    message_sigma = spec.options.message_sigma or 0.0
    scales = [scale for scale in (sigma, message_sigma) if scale > 0.0]
    magnitude = max(abs(bounds.low), abs(bounds.high)) + NOISE_TAIL * sum(scales)
    grid = choose_grid(min(scales, default=None), float(bounds.span), magnitude)

    def mechanism(name: str, scale: float) -> Mechanism:
        if scale == 0.0:
            return NO_NOISE
        parameter = laplace.scale_of_sigma(scale) if name == "laplace" else scale
        return Mechanism(name, math.ldexp(parameter, -grid.exponent))

    return Setting(
        noise=mechanism(spec.noise.mechanism, sigma),
        message_noise=mechanism("gaussian", message_sigma) if message_sigma else None,
        shape=() if dimensions == 1 else (dimensions,),
        grid_exponent=grid.exponent,
        sigma=sigma,
        message_sigma=message_sigma,
        span=float(bounds.span),
        reach=max(abs(bounds.low), abs(bounds.high)),
    )


def weights_of(spec: Spec) -> str:
    return spec.graph.weights or METROPOLIS


def facts_of(spec: Spec, graph: Graph) -> dict[str, Fact]:
    """Return the public facts of the graph, which are signed: its largest degree and the spectral gap of its weights.

    They are unknown for a graph that changes: any degree may come, and the spec gives the gap to assume.
    """
    weights = weights_of(spec)
    if spec.graph.changing:
        return {"degree_max": max(1, graph.n - 1), "gap": spec.options.spectral_gap}
    check_convergence(graph, weights)
    gap = spectrum_ends(sparse_weights(graph, weights)).gap
    return {"degree_max": max(1, largest_degree(graph)), "gap": gap}


def fact(facts: Mapping[str, Fact], name: str) -> float:
    """Return a number that bootstrap signed."""
    found = facts.get(name)
    if not isinstance(found, int | float):
        raise VerificationFailed(f"the roster lacks the fact {name}")
    return float(found)


def inputs_of(shape: Shape, rows: Bounded, grid: Grid) -> tuple[Inputs, list[Any]]:
    """Return a user's inputs: its first row, rounded to the grid of the noise, since lower bits would show through."""
    first = grid.from_grid(grid.to_grid(rows.rows[:1]))
    values: list[Any] = [float(first.reshape(-1)[0])] if shape == () else [first.reshape(shape)]
    return RealInputs(values), values


def publish(values: Sequence[Any]) -> Any:
    """Return all results sent for publication, joined in the users' order; None if there was none."""
    if not values:
        return None
    import numpy as np

    return np.concatenate([np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values])


def estimate_of(shape: Shape, published: Any) -> Estimate:
    """Return the mean of the published results; its error follows from the run's forms."""
    if published is None:
        return Estimate(None, None)
    rows = published.reshape(-1, *shape)
    mean = rows.mean(axis=0)
    return Estimate(float(mean) if shape == () else [float(part) for part in mean], None)


ROUNDS_MAX: Final = 20_000


class GossipAverage(ProtocolDefaults):
    name = "gossip.average"
    tasks = TASKS
    messages = ROUNDS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> GossipPlan:
        gossip: GossipPart = spec.options
        setting = setting_of(spec, dimensions)
        gap = fact(facts, "gap")
        rounds = gossip.rounds
        if not isinstance(rounds, int):
            rounds = rounds_needed(gap, n, setting.sigma, setting.span, dimensions, accelerated=gossip.accelerated)
        gamma = acceleration(gap) if gossip.accelerated else 1.0
        return GossipPlan(
            n=n,
            rounds=rounds,
            weights=weights_of(spec),
            degree_max=int(fact(facts, "degree_max")),
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
        return inputs_of(plan.shape, rows, Grid(plan.grid_exponent))

    def inputs_again(self, plan: GossipPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: GossipPlan, message: Message) -> str | None:
        return check_gossip(plan, message)

    def publish(self, plan: GossipPlan, totals: Sequence[Any]) -> Any:
        return publish(totals)

    def estimate(self, plan: GossipPlan, published: Any, contributions: int) -> Estimate:
        return estimate_of(plan.shape, published)

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


AVERAGE = GossipAverage()

ACTIVATIONS_MAX: Final = 200_000


class GossipRandomized(ProtocolDefaults):
    name = "gossip.randomized"
    tasks = TASKS
    messages = PAIRS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> PairPlan:
        gossip: GossipPart = spec.options
        assert gossip.activations is not None
        setting = setting_of(spec, dimensions)
        return PairPlan(
            n=n,
            activations=gossip.activations,
            weights=weights_of(spec),
            degree_max=int(fact(facts, "degree_max")),
            noise=setting.noise,
            message_noise=setting.message_noise,
            shape=setting.shape,
            grid_exponent=setting.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=fact(facts, "gap"),
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
        return inputs_of(plan.shape, rows, Grid(plan.grid_exponent))

    def inputs_again(self, plan: PairPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: PairPlan, message: Message) -> str | None:
        return check_pairing(plan, message)

    def publish(self, plan: PairPlan, totals: Sequence[Any]) -> Any:
        return publish(totals)

    def estimate(self, plan: PairPlan, published: Any, contributions: int) -> Estimate:
        return estimate_of(plan.shape, published)

    def work(self, spec: Spec, plan: PairPlan | None) -> Sequence[Work]:
        return (Work("[gossip] activations", "activations", spec.options.activations or 0, ACTIVATIONS_MAX),)

    def analysis(self) -> PairAnalysis:
        from p2pdp.protocols.gossip.analysis.averages import PairAnalysis

        return PairAnalysis()


RANDOMIZED = GossipRandomized()
