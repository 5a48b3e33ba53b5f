"""`walk.sum`: the noised sum (or mean) of numbers or vectors, by a token on a ring or a random walk.

Exactly as `walking.py` says, with Gaussian or Laplace noise on a grid, so that additions are exact.
`sigma` is the standard deviation of the noise of one contribution; epsilon and delta are those of one
contribution by the exact Gaussian curve [BW18], or of one Laplace release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import NO_NOISE, Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.core.events import FastHop
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec, WalkPart
from p2pdp.mechanisms import laplace
from p2pdp.mechanisms.clipping import Bounded, Bounds
from p2pdp.mechanisms.grid import Grid, choose_grid
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, Quiet, Work
from p2pdp.protocols.noise import sigma_of
from p2pdp.protocols.walk.walking import Walk, WalkPlan, check_token, visits_bytes
from p2pdp.tasks.inputs import Inputs, NumberInputs
from p2pdp.topology.graphs import Graph
from p2pdp.topology.walk_limits import complete_limit, graph_limit

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan
    from p2pdp.protocols.walk.analysis.sums import WalkAnalysis

VISITS_MAX: Final = "visits_max"
TASKS: Final = {"sum": ("gaussian", "laplace", "none"), "mean": ("gaussian", "laplace", "none")}

_TAIL = 64.0  # standard deviations of room for noise, far beyond anything that is ever drawn


def shared_sigma(sigma: float, n: int) -> float:
    """The standard deviation of each draw of Remark 1, of which the n - 1 others make one together."""
    return sigma / math.sqrt(max(1, n - 1))


RING_MAX: Final = 50_000
WALK_MAX: Final = 1_000_000
TOKENS_MAX: Final = 1_000


def sizes_of(spec: Spec) -> Mapping[str, int | None]:
    """Return what a node may limit of a walk."""
    assert spec.walk is not None
    return {"hops": spec.walk.hops, "laps": spec.walk.laps, "tokens": spec.walk.tokens}


def work_of(spec: Spec) -> Sequence[Work]:
    """Return what decides how long it takes to work out what a walk costs: each contribution on a ring is replayed."""
    assert spec.walk is not None
    order, steps = order_and_steps(spec.walk, spec.graph.kind, spec.run.nodes)
    made = steps * spec.walk.tokens
    if order == "ring":
        return (Work("[walk] laps", "contributions on a ring", made, RING_MAX),)
    return (
        Work("[walk] hops", "contributions on a random walk", made, WALK_MAX),
        Work("[walk] tokens", "tokens on random walks", spec.walk.tokens, TOKENS_MAX),
    )


def order_and_steps(walk: WalkPart, kind: str, n: int) -> tuple[str, int]:
    if walk.order == "ring":
        assert walk.laps is not None
        return "ring", walk.laps * n
    assert walk.hops is not None
    return ("complete" if kind == "complete" else "graph"), walk.hops


def limit_facts(spec: Spec, graph: Graph) -> Mapping[str, Fact]:
    """How often a user contributes at most, where it takes the graph to know; bootstrap signs it."""
    assert spec.walk is not None
    if spec.walk.order == "ring" or spec.graph.kind == "complete":
        return NO_FACTS
    assert spec.walk.hops is not None
    return {VISITS_MAX: graph_limit(graph.neighbours, spec.walk.hops, spec.walk.tokens)}


def visits_max(order: str, n: int, steps: int, tokens: int, facts: Mapping[str, Fact]) -> int | None:
    """The limit on a random walk; None where only the number of steps is one."""
    if order == "complete":
        return complete_limit(n, steps, tokens)
    signed = facts.get(VISITS_MAX)
    return signed if isinstance(signed, int) else None


class WalkSum(Quiet):
    name = "walk.sum"
    tasks = TASKS
    default_task = "sum"

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return limit_facts(spec, graph)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> WalkPlan:
        assert spec.walk is not None
        assert spec.data.clip is not None
        bounds = Bounds(*spec.data.clip)
        order, steps = order_and_steps(spec.walk, spec.graph.kind, n)
        if order == "ring" and spec.walk.tokens > n:
            raise UsageError(f"[walk] tokens: a ring of {n} users carries at most {n} tokens")
        sigma = sigma_of(spec.noise, bounds, dimensions)
        spacing = max(1, n - 1)
        share = shared_sigma(sigma, n) if spec.noise.share else None
        visits = spec.walk.tokens * steps
        magnitude = visits * max(abs(bounds.low), abs(bounds.high)) + _TAIL * sigma * math.sqrt(2 * visits + 1)
        smallest = share if share is not None else (sigma or None)
        grid = choose_grid(smallest, float(bounds.span), magnitude)
        ring = order == "ring"
        return WalkPlan(
            order=order,
            n=n,
            steps=steps,
            tokens=spec.walk.tokens,
            noise=_mechanism(spec.noise.mechanism, sigma, grid),
            shape=() if dimensions == 1 else (dimensions,),
            spacing=spacing if ring else 1,
            share=None if share is None else _mechanism(spec.noise.mechanism, share, grid),
            closing=ring and spec.noise.closing and sigma > 0,
            grid_exponent=grid.exponent,
            visits_max=visits_max(order, n, steps, spec.walk.tokens, facts),
            mean=spec.task.kind == "mean",
        )

    def machine(self, plan: WalkPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Walk:
        return Walk(plan, user, neighbours, inputs)

    def fast_hop(self, plan: WalkPlan, machine: Walk) -> FastHop | None:
        return machine.hop if plan.hops_alike else None

    def inputs(self, plan: WalkPlan, rows: Bounded) -> tuple[NumberInputs, list[Any]]:
        on_grid = Grid(plan.grid_exponent).to_grid(rows.rows)
        values: list[Any] = on_grid.tolist() if plan.shape == () else list(on_grid.reshape(-1, *plan.shape))
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: WalkPlan, values: list[Any]) -> NumberInputs:
        return NumberInputs(values, plan.shape[0] if plan.shape else 1)

    check = staticmethod(check_token)

    def publish(self, plan: WalkPlan, totals: Sequence[Any]) -> Any:
        return sum(totals[1:], start=totals[0])

    def estimate(self, plan: WalkPlan, published: Any, contributions: int) -> Estimate:
        """Return the sum, or the mean over all contributions."""
        divisor = contributions if plan.mean else 1
        value = Grid(plan.grid_exponent).from_grid(published) / divisor
        error = noise_deviation(plan) / divisor
        if plan.shape:
            return Estimate([float(part) for part in value], [error] * plan.shape[0])
        return Estimate(float(value), error)

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        return sizes_of(spec)

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        return work_of(spec)

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        """Where users of a ring share a draw, each draws less than `[noise] sigma`."""
        sigma = super().sigma(spec, dimensions)
        return shared_sigma(sigma, spec.run.nodes) if sigma is not None and spec.noise.share else sigma

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        return visits_bytes(run.plan)

    def analysis(self) -> WalkAnalysis:
        from p2pdp.protocols.walk.analysis.sums import WalkAnalysis

        return WalkAnalysis()


def noise_deviation(plan: WalkPlan) -> float:
    """The standard deviation of all noise in the published sum, in data units."""
    variance = 0.0
    for step in range(1, plan.steps + 1):
        variance += sum(_variance(mechanism) for mechanism in plan.draws_at(step))
    return math.ldexp(math.sqrt(plan.tokens * variance), plan.grid_exponent)


def _variance(mechanism: Mechanism) -> float:
    return mechanism.scale**2 * (2.0 if mechanism.name == "laplace" else 1.0)


def _mechanism(name: str, sigma: float, grid: Grid) -> Mechanism:
    if sigma == 0.0:
        return NO_NOISE
    scale = sigma if name == "gaussian" else laplace.scale_of_sigma(sigma)
    return Mechanism(name, math.ldexp(scale, -grid.exponent))


PROTOCOL = WalkSum()
