"""`gossip.sgd`: a model learned by gossip, a step of descent at each user and then some rounds of averaging, in turn.

Muffliato-GD and -SGD [CEBM22, Algorithm 3]: every user takes the clipped gradient over its own rows (or over a
batch of them), noised, moves its model against it, and `[gossip] rounds` rounds of gossip bring the models together
before the next. Rounds are those of `gossiping.py`, so late and gone users, graphs that change, acceleration (which
begins anew with each gradient) and noise on messages are as there. `[task] averaging` defines a user's result:
its last model, or the mean of its models, all alike or later ones more (weights 1, 2, 3, ...).

Each gradient is a source of its own to the auditor, so everything between them is linear: there is no projection.

Departures from the paper: gradients are clipped; regularization is not part of what is clipped; the paper averages
the mean of all models over time, which nobody has, so a user averages its own.

`learn` computes the same for all users at once, as products of matrices. Guarantee: with the same weights in each round
and the same noise the models are the machines' own except for the rounding of sums and the dithers of messages, in
rounds in which every message arrived. One in ten million contributions may so land on the next step of the grid,
which is less than a millionth of the noise. Columns are independent runs on the same weights: trials, or replays of
one run. The caller owes a matrix of weights for each round: symmetric, sparse, its diagonal included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.protocols import learning
from p2pdp.protocols.contract import NO_FACTS, USERS_AND_RECORDS, Estimate, Fact, ProtocolDefaults, Work
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.options import OPTIONS, GossipPart
from p2pdp.protocols.gossip.plan import ROUNDS, GossipPlan, check_gossip
from p2pdp.tasks.descending import Population
from p2pdp.tasks.descent import Descent
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.inputs import Inputs
from p2pdp.tasks.objectives import Objective
from p2pdp.topology.gossip_rounds import acceleration
from p2pdp.topology.graphs import Graph
from p2pdp.topology.kinds import edge_probability

if TYPE_CHECKING:
    from p2pdp.protocols.gossip.analysis.descents import GossipDescentAnalysis

STEP: Final = "gradients of each user"
LAST: Final = "last"
UNIFORM: Final = "uniform"
LINEAR: Final = "linear"


LEARNING_MAX: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipSgdPlan(GossipPlan):
    """The plan: `gradients` blocks of `block` rounds each; `rate` is that of the first step."""

    learns: ClassVar[bool] = True

    gradients: int
    descent: Descent
    rate: float
    schedule: str
    averaging: str

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

    def rate_at(self, step: int) -> float:
        return learning.rate_at(self.rate, self.schedule, step)


class GossipLearner(Gossip):
    """The machine of one user: its state is its model."""

    _plan: GossipSgdPlan

    def __init__(self, plan: GossipSgdPlan, user: Peer, neighbours: Sequence[Peer], inputs: Any) -> None:
        super().__init__(plan, user, neighbours, inputs)
        self._gradient = inputs.gradient
        self._batches = learning.Batches(plan.descent, inputs)
        self._state = self._sending.settled(inputs.start())
        self._sum: Any = None  # the weighted sum of the models between blocks
        self.learned: learning.Learned | None = None  # after the gossip that followed the last gradient but the present

    def _contribute(self, draws: Draws) -> None:
        plan, visit = self._plan, (self._round - 1) // self._plan.block
        self._add_up(visit)
        rate = plan.rate_at(visit + 1)
        kept = 1.0 - rate * plan.descent.regularization
        gradient = self._gradient(self._state, visit, self._batches.draw(draws))
        direction = self._noised(gradient, draws)
        direction = self._pairs.added_to(direction, self._present, visit, draws, weight=-rate, kept=kept)
        self._state = self._state * kept - direction * rate

    def _add_up(self, gradients: int) -> None:
        """Add the model after these gradients, and after the gossip that followed them, to the result."""
        self.learned = learning.Learned(gradients, self._plan.gradients, STEP, self._state)
        if gradients == 0 or self._plan.averaging == LAST:
            return
        weighted = self._state * float(gradients if self._plan.averaging == LINEAR else 1)
        self._sum = weighted if self._sum is None else self._sum + weighted

    def _end(self, draws: Draws) -> tuple[Send, ...]:
        plan = self._plan
        self._add_up(plan.gradients)
        if self._sum is not None:
            count = plan.gradients
            weights = count * (count + 1) // 2 if plan.averaging == LINEAR else count
            self._state = self._sending.settled(self._sum * (1.0 / weights))
        return super()._end(draws)

    def __repr__(self) -> str:
        return f"GossipLearner(user={self._user})"


class GossipSgd(ProtocolDefaults):
    name = "gossip.sgd"
    units = USERS_AND_RECORDS
    tasks = learning.TASKS
    options = OPTIONS
    keys = learning.KEYS | {"graph.changing", "graph.weights", "noise.pair_sigma", "task.rounds", "task.averaging"}
    messages = ROUNDS

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return {**averaging.facts_of(spec, graph), **learning.facts_of(spec)}

    def model_facts(self, spec: Spec, dimensions: int) -> Mapping[str, Fact]:
        return learning.model_facts(spec, dimensions)

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> GossipSgdPlan:
        gossip: GossipPart = spec.options
        assert spec.task.rounds is not None
        message_sigma = gossip.message_sigma or 0.0
        degree_max, pair_sigma = int(averaging.fact(facts, "degree_max")), spec.noise.pair_sigma or 0.0
        shared = pair_sigma * math.sqrt(degree_max)
        descent = learning.descent_of(spec, dimensions, facts, (message_sigma, pair_sigma), shared)
        if descent.radius is not None or type(descent.objective).project is not Objective.project:
            raise UsageError("[task]: gossip.sgd takes no projection; keep models small by regularization.")
        gap, gradients = averaging.fact(facts, "gap"), spec.task.rounds
        block = gossip.rounds
        if not isinstance(block, int):
            sigma = learning.sigma_of(spec)
            block = rounds_between(gap, n, descent, sigma, accelerated=gossip.accelerated, shared=shared)
        gamma = acceleration(gap) if gossip.accelerated else 1.0
        rate = learning.rate_of(spec, descent, gradients)
        noise = learning.noise_of(learning.sigma_of(spec), descent)
        rates = [learning.rate_at(rate, spec.task.schedule, step) for step in range(1, gradients + 1)]
        reach = Reach(
            values=descent.start_max + sum(rates) * descent.reach,
            sigma=math.hypot(*rates) * learning.sigma_of(spec),
            message_sigma=message_sigma,
            rounds=block * gradients,
            n=n,
            gamma=gamma,
            shared=math.hypot(*rates) * shared,
        )
        return GossipSgdPlan(
            n=n,
            rounds=block * gradients,
            block=block,
            gradients=gradients,
            weights=averaging.weights_of(spec),
            degree_max=degree_max,
            gamma=gamma,
            coin=edge_probability(spec.graph, n) if spec.graph.changing else None,
            noise=noise,
            message_noise=learning.noise_of(message_sigma, descent) if message_sigma else None,
            pair_noise=learning.noise_of(pair_sigma, descent) if pair_sigma else None,
            shape=(dimensions,),
            grid_exponent=descent.grid_exponent,
            publish=gossip.publish,
            patience_s=spec.run.patience_s,
            gap=gap,
            descent=descent,
            rate=rate,
            schedule=spec.task.schedule,
            averaging=spec.task.averaging,
            **reach.dithering(noise),
        )

    def machine(self, plan: GossipSgdPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> GossipLearner:
        return GossipLearner(plan, user, neighbours, inputs)

    def inputs(self, plan: GossipSgdPlan, rows: Examples) -> tuple[Inputs, list[Any]]:
        return learning.inputs_of(plan.descent, rows)

    def inputs_again(self, plan: GossipSgdPlan, values: list[Any]) -> Inputs:
        return learning.inputs_again(plan.descent, values)

    def check(self, plan: GossipSgdPlan, message: Message) -> str | None:
        return check_gossip(plan, message)

    def publish(self, plan: GossipSgdPlan, totals: Sequence[Any]) -> Any:
        return averaging.publish(totals)

    def estimate(self, plan: GossipSgdPlan, published: Any, contributions: int) -> Estimate:
        return averaging.estimate_of(plan.shape, published)

    def sigma(self, spec: Spec, dimensions: int) -> float:
        return learning.sigma_of(spec)

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        """Return the sizes that a node may limit; rounds are those of gradients."""
        return {"rounds": spec.task.rounds}

    def work(self, spec: Spec, plan: GossipSgdPlan | None) -> Sequence[Work]:
        gradients, given = spec.task.rounds or 1, spec.options.rounds
        rounds = (given if isinstance(given, int) else 0) * gradients if plan is None else plan.rounds
        return (Work("[gossip] rounds", "rounds of gossip in all", max(rounds, gradients), LEARNING_MAX),)

    def analysis(self) -> GossipDescentAnalysis:
        from p2pdp.protocols.gossip.analysis.descents import GossipDescentAnalysis

        return GossipDescentAnalysis()


def rounds_between(
    gap: float, n: int, descent: Descent, sigma: float, *, accelerated: bool, shared: float = 0.0
) -> int:
    """Return K of [CEBM22, Theorem 5], with the clip for the spread of the users' gradients, which nobody may know.

    Noise of pairs, `shared` in all of a user's, is part of the spread. Without noise the spread is brought down to 1/n
    of itself.
    """
    if gap <= 0.0:
        raise UsageError(
            "[graph] weights: their spectral gap is 0, so gossip does not converge; choose others or another graph."
        )
    spread = (descent.clip**2 + shared**2) / sigma**2 if sigma > 0.0 else float(n)
    return max(1, math.ceil(math.log(max(n, spread)) / (math.sqrt(gap) if accelerated else gap)))


PROTOCOL = GossipSgd()

Noise = Callable[[int], Floats | None]  # gradient, counted from 0 -> its noise [user, column, number] in data units
Extra = Callable[[Any, Floats], Floats]  # weights and what is sent -> what noise on messages adds to each state
Watch = Callable[[int, Floats], None]  # round, and what users send in it
Done = Callable[[int, Floats], None]  # gradients so far, and the models after the gossip that followed


def learn(
    plan: GossipSgdPlan,
    population: Population,
    matrices: Iterable[Any],
    noise: Noise,
    *,
    columns: int = 1,
    extra: Extra | None = None,
    watch: Watch | None = None,
    done: Done | None = None,
) -> Floats:
    """Return each user's result, [user, column, number]."""
    shape = (plan.n, columns, plan.shape[0])
    now = before = np.tile(plan.descent.start(), (*shape[:2], 1))
    total = np.zeros(shape)
    who = np.repeat(np.arange(plan.n), columns)
    for number, matrix in enumerate(matrices, start=1):
        if plan.begins_block(number):
            visit = (number - 1) // plan.block
            total = total + now * weight_of(plan, visit)
            gradients = population.contributions(now.reshape(-1, shape[2]), who, np.full(len(who), visit))
            direction, added = gradients.reshape(shape), noise(visit)
            rate = plan.rate_at(visit + 1)
            now = now * (1.0 - rate * plan.descent.regularization)
            now = now - (direction if added is None else direction + added) * rate
        if watch is not None:
            watch(number, now)
        gamma, moved = plan.gamma_at(number), (matrix @ now.reshape(plan.n, -1)).reshape(shape)
        if extra is not None:
            moved = moved + extra(matrix, now)
        before, now = now, moved if gamma == 1.0 else gamma * moved + (1.0 - gamma) * before
        if done is not None and number % plan.block == 0:
            done(number // plan.block, now)
    if plan.averaging == LAST:
        return now
    weights = [weight_of(plan, visit) for visit in range(1, plan.gradients + 1)]
    return np.asarray((total + now * weights[-1]) / sum(weights))


def weight_of(plan: GossipSgdPlan, gradients: int) -> float:
    """Return the relative weight, in a user's result, of the model after these gradients and their gossip."""
    if plan.averaging == LAST:
        return float(gradients == plan.gradients)
    return float(gradients if plan.averaging == LINEAR else gradients > 0)
