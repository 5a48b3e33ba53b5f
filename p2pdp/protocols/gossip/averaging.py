"""Averaging by gossip, `gossip.average` and `gossip.randomized`: inputs, noise, and published results.

States are floats in data units. Noise is drawn in whole steps of a grid, by the same exact samplers as for
walks, and multiplied by the step, a power of two. The noised value is rounded to that grid first, or its lowest
bits would be seen beside the noise. The sums of gossip are then floats on a finer grid, and messages of them are
dithered (`dithering.py`).

Where the unit is a record, a user's value is the sum of all of its rows, and noise is that of the sum, as everywhere.
Gossip comes to the mean of the sums; multiplied by users over rows, both public, that is the mean of all rows.

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
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.events import Exchanger
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.mechanisms import laplace
from p2pdp.mechanisms.clipping import Bounded, Bounds
from p2pdp.mechanisms.dither import SCALE
from p2pdp.mechanisms.grid import EXACT_BITS, NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, Estimate, Fact, ProtocolDefaults, Work
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.options import OPTIONS, SHORT, GossipPart
from p2pdp.protocols.gossip.pairing import (
    Pairing,
    PairPlan,
    activation_messages,
    check_pairing,
    draw_activations,
)
from p2pdp.protocols.gossip.plan import EXCHANGE, PAIRS, ROUNDS, GossipPlan, RoundState, check_gossip
from p2pdp.protocols.noise import sigma_of
from p2pdp.protocols.records import Records, records_of, sum_on_grid
from p2pdp.tasks.inputs import Inputs, RealInputs
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from p2pdp.topology.graphs import Graph
from p2pdp.topology.kinds import edge_probability
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, check_convergence, edge_weight, largest_degree, sparse_weights

if TYPE_CHECKING:
    from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, PairAnalysis

_SHARE: Final = math.sqrt(0.02)
"""Dithers whose variance is this share squared of that of noise add 1 % to the standard error.

What a user sends enters the results of others with weights whose squares add up to 1 at most, and to 1 / (2 - gamma)^2
in accelerated rounds; the squares of a noised value's weights in a result add up to 1 / n at least.
"""

TASKS: Final = {"mean": ("gaussian", "laplace", "none")}


@dataclass(frozen=True, slots=True)
class Setting:
    """The noise and shape of an averaging run; `shared` is the deviation of all that a user shares with others."""

    noise: Mechanism
    message_noise: Mechanism | None
    pair_noise: Mechanism | None
    shape: Shape
    grid_exponent: int
    sigma: float
    message_sigma: float
    shared: float
    span: float
    reach: float  # the largest absolute value
    records: Records | None

    def dithering(self, n: int, rounds: int, gamma: float = 1.0, *, short: bool = False) -> dict[str, Any]:
        """Return the plan's fields that describe its dither, and how states are sent."""
        short = short and self.shape != ()
        reach = Reach(self.reach, self.sigma, self.message_sigma, rounds, n, gamma, self.shared)
        fields = reach.dithering(self.noise, short=short) | {"short": short}
        added = math.ldexp(SCALE, fields.get("fine_exponent", 0)) * math.sqrt(rounds * n) / (2.0 - gamma)
        too_coarse = added > _SHARE * self.sigma
        if self.records is not None and self.sigma > 0.0 and too_coarse and not short:
            raise UsageError(
                "[noise] sigma: too little for sums of so many rows, whose rounding would show in the standard error; "
                "raise it, or let users have fewer rows"
            )
        if short and too_coarse:
            raise UsageError(
                '[gossip] precision: "short" states could err by more than their standard error says: there is too '
                'little noise for their range, or there are too many rounds; take "full"'
            )
        return fields


def setting_of(spec: Spec, dimensions: int, degree_max: int, records: Records | None = None) -> Setting:
    assert spec.data.clip is not None
    bounds = Bounds(*spec.data.clip)
    reach = max(abs(bounds.low), abs(bounds.high)) * (1 if records is None else records.most)
    sigma = sigma_of(spec.noise, bounds, dimensions)
    message_sigma = spec.options.message_sigma or 0.0
    pair_sigma = spec.noise.pair_sigma or 0.0
    shared = pair_sigma * math.sqrt(degree_max)
    scales = [scale for scale in (sigma, message_sigma, pair_sigma) if scale > 0.0]
    magnitude = reach + NOISE_TAIL * (sigma + message_sigma + shared)
    if pair_sigma or records is not None:  # then what a state begins with has to be exact, since claims rest on the sum
        magnitude *= 2.0**EXACT_BITS
    grid = choose_grid(min(scales, default=None), float(bounds.span), magnitude)

    def mechanism(name: str, scale: float) -> Mechanism:
        if scale == 0.0:
            return NO_NOISE
        parameter = laplace.scale_of_sigma(scale) if name == "laplace" else scale
        return Mechanism(name, math.ldexp(parameter, -grid.exponent))

    return Setting(
        noise=mechanism(spec.noise.mechanism, sigma),
        message_noise=mechanism("gaussian", message_sigma) if message_sigma else None,
        pair_noise=mechanism("gaussian", pair_sigma) if pair_sigma else None,
        shape=() if dimensions == 1 else (dimensions,),
        grid_exponent=grid.exponent,
        sigma=sigma,
        message_sigma=message_sigma,
        shared=shared,
        span=float(bounds.span) if records is None else records.spread(*spec.data.clip),
        reach=reach,
        records=records,
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


def inputs_of(shape: Shape, rows: Bounded, grid: Grid, *, summed: bool = False) -> tuple[Inputs, list[Any]]:
    """Return a user's inputs: its first row, rounded to the grid of the noise, since lower bits would show through.

    With `summed` it is the sum of all its rows.
    """
    on_grid = sum_on_grid(grid, rows.rows).reshape(1, -1) if summed else grid.to_grid(rows.rows[:1])
    first = grid.from_grid(on_grid)
    values: list[Any] = [float(first.reshape(-1)[0])] if shape == () else [first.reshape(shape)]
    return RealInputs(values), values


def publish(values: Sequence[Any]) -> Any:
    """Return all results sent for publication, joined in the users' order; None if there was none."""
    if not values:
        return None
    import numpy as np

    return np.concatenate([np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values])


def estimate_of(shape: Shape, published: Any, scale: float | None = 1.0) -> Estimate:
    """Return the mean of the published results times `scale`; its error follows from the run's forms."""
    if published is None or scale is None:
        return Estimate(None, None)
    mean = published.reshape(-1, *shape).mean(axis=0) * scale
    return Estimate(float(mean) if shape == () else [float(part) for part in mean], None)


ROUNDS_MAX: Final = 20_000


class GossipAverage(ProtocolDefaults):
    name = "gossip.average"
    tasks = TASKS
    messages = ROUNDS
    units = USERS_AND_RECORDS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing", "graph.weights", "noise.pair_sigma"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> GossipPlan:
        gossip: GossipPart = spec.options
        degree_max = int(fact(facts, "degree_max"))
        setting = setting_of(spec, dimensions, degree_max, records_of(spec, facts))
        gap = fact(facts, "gap")
        rounds = gossip.rounds
        if not isinstance(rounds, int):
            rounds = rounds_needed(
                gap, n, setting.sigma, setting.span, dimensions, accelerated=gossip.accelerated, shared=setting.shared
            )
        gamma = acceleration(gap) if gossip.accelerated else 1.0
        return GossipPlan(
            n=n,
            rounds=rounds,
            weights=weights_of(spec),
            degree_max=degree_max,
            gamma=gamma,
            coin=edge_probability(spec.graph, n) if spec.graph.changing else None,
            noise=setting.noise,
            message_noise=setting.message_noise,
            pair_noise=setting.pair_noise,
            shape=setting.shape,
            grid_exponent=setting.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=gap,
            records=setting.records,
            **setting.dithering(n, rounds, gamma, short=gossip.precision == SHORT),
        )

    def machine(self, plan: GossipPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Gossip:
        return Gossip(plan, user, neighbours, inputs)

    def fast_exchange(self, plan: GossipPlan, machine: Gossip) -> Exchanger:
        return Exchanger(EXCHANGE, len(RoundState._fields), machine.exchange, vectors=plan.shape != ())

    def inputs(self, plan: GossipPlan, rows: Bounded) -> tuple[Inputs, list[Any]]:
        return inputs_of(plan.shape, rows, Grid(plan.grid_exponent), summed=plan.records is not None)

    def inputs_again(self, plan: GossipPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: GossipPlan, message: Message) -> str | None:
        return check_gossip(plan, message)

    def publish(self, plan: GossipPlan, totals: Sequence[Any]) -> Any:
        return publish(totals)

    def estimate(self, plan: GossipPlan, published: Any, contributions: int) -> Estimate:
        return estimate_of(plan.shape, published, plan.per_row)

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
    units = USERS_AND_RECORDS
    default_task = "mean"
    options = OPTIONS
    keys = frozenset({"graph.changing", "graph.weights", "noise.pair_sigma"})

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return facts_of(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> PairPlan:
        gossip: GossipPart = spec.options
        assert gossip.activations is not None
        degree_max = int(fact(facts, "degree_max"))
        setting = setting_of(spec, dimensions, degree_max, records_of(spec, facts))
        return PairPlan(
            n=n,
            activations=gossip.activations,
            weights=weights_of(spec),
            degree_max=degree_max,
            noise=setting.noise,
            message_noise=setting.message_noise,
            pair_noise=setting.pair_noise,
            shape=setting.shape,
            grid_exponent=setting.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=fact(facts, "gap"),
            records=setting.records,
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
        return inputs_of(plan.shape, rows, Grid(plan.grid_exponent), summed=plan.records is not None)

    def inputs_again(self, plan: PairPlan, values: list[Any]) -> RealInputs:
        return RealInputs(values)

    def check(self, plan: PairPlan, message: Message) -> str | None:
        return check_pairing(plan, message)

    def publish(self, plan: PairPlan, totals: Sequence[Any]) -> Any:
        return publish(totals)

    def estimate(self, plan: PairPlan, published: Any, contributions: int) -> Estimate:
        return estimate_of(plan.shape, published, plan.per_row)

    def work(self, spec: Spec, plan: PairPlan | None) -> Sequence[Work]:
        return (Work("[gossip] activations", "activations", spec.options.activations or 0, ACTIVATIONS_MAX),)

    def analysis(self) -> PairAnalysis:
        from p2pdp.protocols.gossip.analysis.averages import PairAnalysis

        return PairAnalysis()


RANDOMIZED = GossipRandomized()
