"""`pairwise.sum`: the sum, mean or histogram of the survivors' values, with the noise that each of them added.

A value is a user's first row, or the sum of all its rows where the unit is a record, on a grid whose sums stay below
2^61 steps, so that they are exact modulo 2^64. A category is a vector with a single 1. `[noise] epsilon` and `delta`
are a target for the sum: what it may tell the curator and `colluders_max` colluders of another user (or as many as
`[privacy] colluders` names, if these are more), if `survivors_min` users are left. It follows from how many honest
users hide each other then (`component`, a signed fact of the graph): all that are left if they are connected in at
least half of the random placements of those who are missing or collude, else the median of the smallest component.

Without colluders that number (`together`) is a promise: bootstrap puts nobody out whose absence would leave some
survivor connected with fewer, but reports the run blocked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import NO_NOISE, UNIFORM, Mechanism
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms.clipping import Bounded, Bounds, sensitivity
from p2pdp.mechanisms.grid import NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, Estimate, Fact, ProtocolDefaults
from p2pdp.protocols.noise import gaussian_sigma
from p2pdp.protocols.pairwise.collecting import MaskCollector
from p2pdp.protocols.pairwise.masking import Masking
from p2pdp.protocols.pairwise.options import OPTIONS, gaussian_masks, settles, survivors_min
from p2pdp.protocols.pairwise.plan import MESSAGES, PairwisePlan, check_pairwise
from p2pdp.protocols.records import counts_of, records_of, sum_on_grid
from p2pdp.tasks.inputs import NumberInputs
from p2pdp.topology.components import placements
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.pairwise.analysis.sums import PairwiseAnalysis

COMPONENT: Final = "component"
TOGETHER: Final = "together"
_MECHANISMS: Final = ("gaussian", "none")
_COUNTED: Final = Bounds(0.0, 1.0)  # what a user adds to one count


class PairwiseSum(ProtocolDefaults):
    name = "pairwise.sum"
    tasks: Final = {"sum": _MECHANISMS, "mean": _MECHANISMS, "histogram": _MECHANISMS}
    default_task = "sum"
    options = OPTIONS
    keys = frozenset({"noise.pair_sigma", "privacy.colluders_max"})
    messages = MESSAGES
    units = USERS_AND_RECORDS

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        facts = {COMPONENT: _honest(spec, graph.n), TOGETHER: survivors_min(spec, graph.n)}
        seed = spec.run.seed or 0
        return {name: max(1, placements(graph, graph.n - left, seed).typical) for name, left in facts.items()}

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> PairwisePlan:
        hidden = _fact(facts, COMPONENT, _honest(spec, n))
        together = _fact(facts, TOGETHER, survivors_min(spec, n))
        numbers = _numbers(spec, dimensions)
        bounds = _bounds(spec)
        sigma = _sigma(spec, dimensions, hidden)
        pair_sigma = (spec.noise.pair_sigma or 0.0) if gaussian_masks(spec) else 0.0
        records = records_of(spec, facts)
        reach = max(abs(bounds.low), abs(bounds.high)) * (1 if records is None else records.most)
        magnitude = n * reach + NOISE_TAIL * (sigma * math.sqrt(n) + pair_sigma * n)
        scales = [scale for scale in (sigma, pair_sigma) if scale > 0.0]
        grid = choose_grid(min(scales, default=None), float(bounds.span), magnitude)
        return PairwisePlan(
            n=n,
            noise=_gaussian(sigma, grid),
            mask=_gaussian(pair_sigma, grid) if pair_sigma else UNIFORM,
            settles=settles(spec),
            shape=() if numbers == 1 and spec.task.kind != "histogram" else (numbers,),
            grid_exponent=grid.exponent,
            survivors_min=survivors_min(spec, n),
            colluders_max=_colluders(spec, n),
            hidden=hidden,
            together=together,
            task=spec.task.kind,
            records=records,
        )

    def machine(self, plan: PairwisePlan, user: Peer, neighbours: Sequence[Peer], inputs: Any) -> Masking:
        return Masking(plan, user, neighbours, inputs)

    def collector(self, plan: PairwisePlan) -> MaskCollector:
        return MaskCollector(plan)

    def inputs(self, plan: PairwisePlan, rows: Bounded) -> tuple[NumberInputs, list[Any]]:
        import numpy as np

        grid = Grid(plan.grid_exponent)
        if plan.records is not None:
            counts = counts_of(rows.rows, plan.shape[0]) * grid.to_grid(1.0) if plan.counts else None
            total = sum_on_grid(grid, rows.rows) if counts is None else counts
            summed: list[Any] = [total.reshape(plan.shape) if plan.shape else int(total)]
            return self.inputs_again(plan, summed), summed
        first = rows.rows[:1]
        if plan.counts:
            first = np.eye(plan.shape[0])[int(first.reshape(-1)[0])]
        on_grid = grid.to_grid(np.asarray(first, dtype=np.float64).reshape(-1))
        values: list[Any] = [on_grid if plan.shape else int(on_grid[0])]
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: PairwisePlan, values: list[Any]) -> NumberInputs:
        return NumberInputs(values, plan.shape[0] if plan.shape else 1)

    def check(self, plan: PairwisePlan, message: Message) -> str | None:
        return check_pairwise(plan, message)

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        """Return the least that own noise may be; with a target it is what connected users would have."""
        return _sigma(spec, dimensions, _honest(spec, spec.run.nodes))

    def publish(self, plan: PairwisePlan, totals: Sequence[Any]) -> Any:
        return totals[0]

    def estimate(self, plan: PairwisePlan, published: Any, contributions: int) -> Estimate:
        """Return the sum of the survivors' values, or their mean, or that of all of their rows."""
        if plan.records is None:
            return self._estimated(plan, published, contributions, contributions)
        return self._estimated(plan, published, plan.n, contributions)

    def _estimated(self, plan: PairwisePlan, published: Any, users: int, counted: int) -> Estimate:
        """Return the estimate from what so many users contributed, which counts so much in a mean."""
        divisor = counted if plan.task == "mean" else 1
        if published is None or users == 0 or divisor == 0:
            return Estimate(None, None)
        value = Grid(plan.grid_exponent).from_grid(published) / divisor
        error = math.ldexp(math.sqrt(users) * plan.noise.scale / divisor, plan.grid_exponent)
        if plan.shape:
            return Estimate([float(part) for part in value], [error] * plan.shape[0])
        return Estimate(float(value), error)

    def estimate_alone(self, plan: PairwisePlan, published: Any, survivors: Sequence[Peer] | None) -> Estimate:
        """Return the estimate; if noise of pairs may be left in it, its error is not known."""
        left = survivors or ()
        counted = len(left) if plan.records is None else plan.records.of(left)
        found = self._estimated(plan, published, len(left), counted)
        settled = plan.settles or survivors is None or len(survivors) == plan.n
        return found if settled else Estimate(found.value, None)

    def analysis(self) -> PairwiseAnalysis:
        from p2pdp.protocols.pairwise.analysis.sums import PairwiseAnalysis

        return PairwiseAnalysis()


def _fact(facts: Mapping[str, Fact], name: str, most: int) -> int:
    """Return a number of users that bootstrap signed; more than can be left would mean too little noise."""
    found = facts.get(name)
    if not isinstance(found, int) or not 1 <= found <= most:
        raise VerificationFailed(f"the roster lacks the fact {name}, from 1 to {most} users")
    return found


def _honest(spec: Spec, n: int) -> int:
    """Return how many users are left and do not collude, at least."""
    return survivors_min(spec, n) - _colluders(spec, n)


def _colluders(spec: Spec, n: int) -> int:
    """Return how many colluders masks and noise are made for: the named ones at least, as far as somebody is honest."""
    most = max(spec.privacy.colluders_max, len(spec.privacy.colluders))
    return min(most, survivors_min(spec, n) - 1)


def _bounds(spec: Spec) -> Bounds:
    return _COUNTED if spec.data.clip is None else Bounds(*spec.data.clip)


def _numbers(spec: Spec, dimensions: int) -> int:
    return spec.task.categories or 0 if spec.task.kind == "histogram" else dimensions


def _sigma(spec: Spec, dimensions: int, hidden: int) -> float:
    """Return the standard deviation of a user's own noise, which with a target meets it for `hidden` users together."""

    def moved() -> float:
        counts = spec.data.clip is None
        return math.nextafter(math.sqrt(2.0), 2.0) if counts else sensitivity(_bounds(spec), dimensions)

    own = gaussian_sigma(spec.noise, moved)
    return own if spec.noise.sigma is not None else own / math.sqrt(hidden)


def _gaussian(sigma: float, grid: Grid) -> Mechanism:
    return Mechanism("gaussian", math.ldexp(sigma, -grid.exponent)) if sigma else NO_NOISE


PROTOCOL = PairwiseSum()
