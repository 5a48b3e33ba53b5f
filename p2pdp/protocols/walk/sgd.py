"""`walk.sgd`: a model learned by stochastic gradient descent on a token that visits users (Algorithm 4).

The token is the model. Its holder adds noise to the clipped gradient over its own rows, takes one step against that,
projects, and passes it on as `walking.py` says: to anybody on the complete graph, to a neighbour on others, to
the next one on a ring. The steps of each token follow one schedule of rates. Several tokens are several models,
each of `hops` steps, and the curator publishes their mean; a user's batches go on from one token to the other.

This is not linear: a step depends on the model by the gradient and by the projection. Over symbols a token is a
trace of its contributions in order (`tasks/inputs.py`), and the accounts of this protocol rest on that; those for
linear views refuse it.

Models live on a public fine grid, and each carries a dither from its own step on (`dithering.py`): the
rounding of floats would disclose more about the steps between two visits than the models do. The remaining effect of
rounding is bounded in `privacy/descent_rounding.py`. A user whose message has to go elsewhere sends the same model
again.

Departures from the paper ([CB22], Algorithm 4 as [ABR23] prints it): gradients are
clipped before noise is added, also where the loss is Lipschitz; user 0 starts a single token; regularization is not
part of the gradient that is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.events import Exchanger
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms import dither
from p2pdp.protocols import learning
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, Estimate, Fact
from p2pdp.protocols.dithering import GAUSSIAN_TAIL, MODEL_BITS, DitheredModels, dithers
from p2pdp.protocols.walk.options import WalkDefaults, course_of
from p2pdp.protocols.walk.walking import Walk, WalkPlan, check_fields, exchanger
from p2pdp.tasks.descent import Descent
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.inputs import Inputs
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.walk.analysis.descents import WalkDescentAnalysis


@dataclass(frozen=True, slots=True, kw_only=True)
class SgdPlan(WalkPlan):
    """The plan of a walk whose token is a model. `rate` is that of the first step."""

    learns: ClassVar[bool] = True

    descent: Descent
    rate: float
    schedule: str
    dither: Mechanism | None = None  # of every model, in steps of the fine grid; None without noise of the users' own
    fine_exponent: int = 0
    model_max: float = learning.MODEL_MAX  # no number of a model that is taken is beyond this

    def rate_at(self, step: int) -> float:
        return learning.rate_at(self.rate, self.schedule, step)

    @property
    def unit(self) -> float:
        return self.descent.step

    @property
    def sensitivity(self) -> float:
        """Return the sensitivity of a contribution."""
        return self.descent.sensitivity

    @property
    def part(self) -> float:
        return self.descent.part

    @property
    def protection(self) -> tuple[Mechanism, ...]:
        return learning.protection_of(self.noise, self.descent)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (self.noise,) if self.dither is None else (self.noise, self.dither)

    @property
    def fine(self) -> float:
        """Return one step of the grid on which models live, in data units."""
        return math.ldexp(1.0, self.fine_exponent)

    @property
    def model_range(self) -> float:
        """Return a bound that a model's numbers exceed with negligible probability only."""
        return math.ldexp(1.0, self.fine_exponent + MODEL_BITS + 1)

    @property
    def rates(self) -> list[float]:
        return [self.rate_at(step) for step in range(1, self.steps + 1)]


class Learner(Walk):
    """The machine of one user: a step of descent at each visit."""

    _plan: SgdPlan

    def __init__(self, plan: SgdPlan, user: Peer, neighbours: Sequence[Peer], inputs: Any) -> None:
        super().__init__(plan, user, neighbours, inputs)
        self._gradient, self._moved = inputs.gradient, inputs.moved
        self._batches = learning.Batches(plan.descent, inputs)
        self._unit = plan.descent.step
        self._allowed = inputs.allowed if plan.dither is not None and plan.descent.projects else None
        self._leaving = DitheredModels(plan)

    def _contributed(self, value: Any, step: int, noise: Sequence[Mechanism], draws: Draws) -> Any:
        visit, self._visits = self._visits, self._visits + 1
        if self._allowed is not None and step > 1:
            value = self._allowed(value)
        direction = self._inputs.zero()
        if visit < self._visits_max:
            direction = self._gradient(value, visit, self._batches.draw(draws))
        for mechanism in noise:
            direction = direction + draws.noise(mechanism, self._plan.shape) * self._unit
        return self._leaving.left(self._moved(value, direction, self._plan.rate_at(step)), draws)

    def prepare(self) -> None:
        """Make the dither of the next model ready."""
        self._leaving.prepare()

    def _start(self) -> Any:
        inputs: Any = self._inputs
        return inputs.start()

    def __repr__(self) -> str:
        return f"Learner(user={self._user})"


class WalkSgd(WalkDefaults):
    name = "walk.sgd"
    units = USERS_AND_RECORDS
    tasks = learning.TASKS
    keys = learning.KEYS | {"task.radius"}

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return {**learning.facts_of(spec), **super().graph_facts(spec, graph)}

    def model_facts(self, spec: Spec, dimensions: int) -> Mapping[str, Fact]:
        return learning.model_facts(spec, dimensions)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> SgdPlan:
        course = course_of(spec, n, facts)
        descent = learning.descent_of(spec, dimensions, facts)
        rate = learning.rate_of(spec, descent, course.steps)
        noise = learning.noise_of(learning.sigma_of(spec), descent)
        return SgdPlan(
            **course.fields,
            noise=noise,
            shape=(dimensions,),
            grid_exponent=descent.grid_exponent,
            descent=descent,
            rate=rate,
            schedule=spec.task.schedule,
            **dithering(spec, descent, rate, noise, course.steps),
        )

    def machine(self, plan: SgdPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Learner:
        return Learner(plan, user, neighbours, inputs)

    def fast_exchange(self, plan: SgdPlan, machine: Learner) -> Exchanger:
        return exchanger(machine, partial(learning.check_model, plan.shape, most=plan.model_max))

    def inputs(self, plan: SgdPlan, rows: Examples) -> tuple[Inputs, list[Any]]:
        return learning.inputs_of(plan.descent, rows)

    def inputs_again(self, plan: SgdPlan, values: list[Any]) -> Inputs:
        return learning.inputs_again(plan.descent, values)

    def check(self, plan: SgdPlan, message: Message) -> str | None:
        if message.type not in (TOKEN, TOTAL):
            return None
        return check_fields(plan, message) or learning.check_model(plan.shape, message.value, plan.model_max)

    def publish(self, plan: SgdPlan, totals: Sequence[Any]) -> Any:
        """Return the mean of the models."""
        return sum(totals[1:], start=totals[0]) * (1.0 / len(totals))

    def estimate(self, plan: SgdPlan, published: Any, contributions: int) -> Estimate:
        """Return the model; its standard error is an upper bound, if one is known."""
        bound = learning.noise_bound(plan.descent, plan.noise, plan.rates)
        error = None if bound is None else [bound] * plan.descent.dimension
        return Estimate([float(part) for part in published], error)

    def own_scores(self, plan: SgdPlan, rows: Callable[[], Examples], published: Any) -> dict[str, float | None]:
        own = rows()
        return learning.scores_of(plan.descent.objective, own, own.test, published)

    def sigma(self, spec: Spec, dimensions: int) -> float:
        return learning.sigma_of(spec)

    def analysis(self) -> WalkDescentAnalysis:
        from p2pdp.protocols.walk.analysis.descents import WalkDescentAnalysis

        return WalkDescentAnalysis()


def dithering(spec: Spec, descent: Descent, rate: float, noise: Mechanism, steps: int) -> dict[str, Any]:
    """Return the fields of a plan that say which dither models carry, and how far they go.

    A number of a model goes as far as the radius, or as its start, clips and noise of all steps add up to, but for a
    chance that counts for nothing; dithers add up beside them, each below 2^-23 of the whole.
    """
    if noise.name == "none":
        return {}
    straight, random = learning.rate_sums(rate, spec.task.schedule, steps)
    reach = descent.start_max + straight * descent.reach + GAUSSIAN_TAIL * random * learning.sigma_of(spec)
    if descent.radius is not None:
        reach = max(min(reach, descent.radius), descent.start_max)
    late = GAUSSIAN_TAIL * math.sqrt(steps + 1.0) * dither.SCALE * math.ldexp(2.0, -MODEL_BITS)
    fields = dithers(reach * (1.0 + late), MODEL_BITS)
    if not descent.projects:  # how far an objective's own projection goes is unknown
        fields["model_max"] = min(learning.MODEL_MAX, math.ldexp(1.0, fields["fine_exponent"] + MODEL_BITS + 1))
    return fields


PROTOCOL = WalkSgd()
