"""Walks that add up: `walk.sum` and `walk.histogram`, by a token as `walking.py` says.

`walk.sum` is the noised sum (or mean) of numbers or vectors, on a ring or a random walk, with Gaussian or Laplace noise
on a grid, so that additions are exact. `sigma` is the standard deviation of the noise of one contribution; epsilon and
delta are those of one contribution by the exact Gaussian curve [BW18], or of one Laplace release.

`walk.histogram` gives unbiased counts of categories, on a ring or a random walk on the complete graph:
[CB20, Algorithm 2] with two corrections. The estimator is applied once, at the end, and the uniform elements that hide
the first contributions are a fixed number, put in once by the first holder and once more by the last, who would
otherwise be the only cover of the last contributions. The ring takes ceil(gamma n) of them unless randomization is
switched off; on the complete graph (section 4.2) each report stands on its own randomization and there are none.

Where the unit is a record, a user contributes the sum of all of its rows at each visit (`protocols/records.py`). Of a
histogram these are the counts of its rows, to which Gaussian noise is added as to sums: one row moves two counts by 1,
and a report for each row would need far more noise in all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import Unit
from p2pdp.core.draws import NO_NOISE, Mechanism, Shape
from p2pdp.core.events import Exchanger, FastHop
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms import laplace, randomized_response
from p2pdp.mechanisms.clipping import Bounded, Bounds
from p2pdp.mechanisms.grid import NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, Estimate, Fact
from p2pdp.protocols.noise import gaussian_sigma, sigma_of
from p2pdp.protocols.records import counts_of, records_of, sum_on_grid
from p2pdp.protocols.walk.options import WalkDefaults, course_of
from p2pdp.protocols.walk.walking import Walk, WalkPlan, check_token, check_value, exchanger
from p2pdp.tasks.inputs import CategoryInputs, Inputs, NumberInputs

if TYPE_CHECKING:
    from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis, WalkAnalysis

TASKS: Final = {"sum": ("gaussian", "laplace", "none"), "mean": ("gaussian", "laplace", "none")}


def shared_sigma(sigma: float, n: int) -> float:
    """Return the standard deviation of each draw of Remark 1; the n - 1 others' together make one whole draw."""
    return sigma / math.sqrt(max(1, n - 1))


class WalkSum(WalkDefaults):
    name = "walk.sum"
    tasks = TASKS
    default_task = "sum"
    keys = frozenset({"noise.closing", "noise.share"})

    units = USERS_AND_RECORDS

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> WalkPlan:
        assert spec.data.clip is not None
        bounds = Bounds(*spec.data.clip)
        shape = () if dimensions == 1 else (dimensions,)
        return _plan_of(spec, n, facts, bounds, sigma_of(spec.noise, bounds, dimensions), shape)

    def machine(self, plan: WalkPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Walk:
        return Walk(plan, user, neighbours, inputs)

    def fast_hop(self, plan: WalkPlan, machine: Walk) -> FastHop | None:
        return machine.hop if plan.hops_alike else None

    def fast_exchange(self, plan: WalkPlan, machine: Walk) -> Exchanger | None:
        return exchanger(machine, partial(check_value, plan)) if plan.shape else None

    def inputs(self, plan: WalkPlan, rows: Bounded) -> tuple[NumberInputs, list[Any]]:
        if plan.records is not None:
            return self._inputs_of_records(plan, rows)
        on_grid = Grid(plan.grid_exponent).to_grid(rows.rows)
        values: list[Any] = on_grid.tolist() if plan.shape == () else list(on_grid.reshape(-1, *plan.shape))
        return self.inputs_again(plan, values), values

    def _inputs_of_records(self, plan: WalkPlan, rows: Bounded) -> tuple[NumberInputs, list[Any]]:
        total = sum_on_grid(Grid(plan.grid_exponent), rows.rows)
        values = [int(total) if plan.shape == () else total.reshape(plan.shape)]
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: WalkPlan, values: list[Any]) -> NumberInputs:
        return NumberInputs(values, plan.shape[0] if plan.shape else 1)

    check = staticmethod(check_token)

    def publish(self, plan: WalkPlan, totals: Sequence[Any]) -> Any:
        return sum(totals[1:], start=totals[0])

    def estimate(self, plan: WalkPlan, published: Any, contributions: int) -> Estimate:
        """Return the sum, or the mean over all contributions, or over all rows in them."""
        if plan.mean and contributions == 0:
            return Estimate(None, None)
        divisor = contributions if plan.mean else 1
        value = Grid(plan.grid_exponent).from_grid(published) / divisor
        error = noise_deviation(plan) / divisor
        if plan.shape:
            return Estimate([float(part) for part in value], [error] * plan.shape[0])
        return Estimate(float(value), error)

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        """Return the smallest deviation: users of a ring who share a draw each draw less than `[noise] sigma`."""
        sigma = super().sigma(spec, dimensions)
        return shared_sigma(sigma, spec.run.nodes) if sigma is not None and spec.noise.share else sigma

    def analysis(self) -> WalkAnalysis:
        from p2pdp.protocols.walk.analysis.sums import WalkAnalysis

        return WalkAnalysis()


def _plan_of(
    spec: Spec, n: int, facts: Mapping[str, Fact], bounds: Bounds, sigma: float, shape: Shape, *, counts: bool = False
) -> WalkPlan:
    """Return the plan of a walk that adds up numbers, with this noise for one contribution."""
    course, records = course_of(spec, n, facts), records_of(spec, facts)
    spacing = max(1, n - 1)
    share = shared_sigma(sigma, n) if spec.noise.share else None
    visits = course.tokens * course.steps
    reach = max(abs(bounds.low), abs(bounds.high)) * (1 if records is None else records.most)
    magnitude = visits * reach + NOISE_TAIL * sigma * math.sqrt(2 * visits + 1)
    smallest = share if share is not None else (sigma or None)
    grid = choose_grid(smallest, float(bounds.span), magnitude)
    ring = course.order == "ring"
    return WalkPlan(
        **course.fields,
        noise=_mechanism(spec.noise.mechanism, sigma, grid),
        shape=shape,
        spacing=spacing if ring else 1,
        share=None if share is None else _mechanism(spec.noise.mechanism, share, grid),
        closing=ring and spec.noise.closing and sigma > 0,
        grid_exponent=grid.exponent,
        mean=spec.task.kind == "mean",
        counts=counts,
        records=records,
    )


def noise_deviation(plan: WalkPlan) -> float:
    """Return the standard deviation of all noise in the published sum, in data units."""
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

HISTOGRAM_TASKS: Final = {"histogram": ("randomized_response", "gaussian", "none")}
_COUNTED: Final = Bounds(0.0, 1.0)  # what a row adds to one count


class WalkHistogram(WalkDefaults):
    name = "walk.histogram"
    tasks = HISTOGRAM_TASKS
    default_task = "histogram"
    units = USERS_AND_RECORDS

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> WalkPlan:
        assert spec.task.categories is not None
        categories = spec.task.categories
        if spec.privacy.unit == Unit.RECORD:
            return _plan_of(spec, n, facts, _COUNTED, _sigma_of_counts(spec), (categories,), counts=True)
        course = course_of(spec, n, facts)
        gamma = 0.0
        if spec.noise.mechanism == "randomized_response":
            assert spec.noise.epsilon is not None
            gamma = randomized_response.gamma_of(spec.noise.epsilon, categories)
        name = "randomized_response" if gamma > 0 else "none"
        return WalkPlan(
            **course.fields,
            noise=Mechanism(name, gamma, categories),
            shape=(categories,),
            spacing=1,
            dummies=math.ceil(gamma * n) if course.order == "ring" else 0,
        )

    def machine(self, plan: WalkPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Walk:
        return Walk(plan, user, neighbours, inputs)

    def inputs(self, plan: WalkPlan, rows: Any) -> tuple[Inputs, list[Any]]:
        if plan.records is not None:
            counts = counts_of(rows.rows, plan.shape[0]) * Grid(plan.grid_exponent).to_grid(1.0)
            return self.inputs_again(plan, [counts]), [counts]
        values = [int(value) for value in rows.rows]
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: WalkPlan, values: list[Any]) -> Inputs:
        if plan.records is not None:
            return NumberInputs(values, plan.shape[0])
        return CategoryInputs(values, plan.noise.categories)

    def check(self, plan: WalkPlan, message: Message) -> str | None:
        return check_token(plan, message)

    def publish(self, plan: WalkPlan, totals: Sequence[Any]) -> Any:
        return sum(totals[1:], start=totals[0])

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        return _sigma_of_counts(spec) if spec.noise.mechanism == "gaussian" else super().sigma(spec, dimensions)

    def estimate(self, plan: WalkPlan, published: Any, contributions: int) -> Estimate:
        if plan.records is not None:
            counts = Grid(plan.grid_exponent).from_grid(published)
            return Estimate([float(count) for count in counts], [noise_deviation(plan)] * plan.shape[0])
        gamma, dummies = plan.noise.scale, 2 * plan.dummies * plan.tokens
        if gamma == 0.0:
            return Estimate([float(count) for count in published], [0.0] * plan.noise.categories)
        counts = randomized_response.estimate(published, contributions, gamma, dummies)
        errors = randomized_response.standard_error(counts, contributions, gamma, dummies)
        return Estimate([float(count) for count in counts], [float(error) for error in errors])

    def analysis(self) -> HistogramAnalysis:
        from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis

        return HistogramAnalysis()


def _sigma_of_counts(spec: Spec) -> float:
    """Return the standard deviation of the noise of each count, of which a row moves two."""
    return gaussian_sigma(spec.noise, lambda: math.nextafter(math.sqrt(2.0), 2.0))


HISTOGRAM = WalkHistogram()
