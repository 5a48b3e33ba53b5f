"""How often a random walk will come to each user, before it has taken place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from p2pdp.privacy.visits import STEPS_MAX, USERS_MAX, Law, binomial_visits, certain, graph_visits
from p2pdp.protocols.run_plan import RunPlan


@dataclass(frozen=True)
class Visits:
    """How often a random walk comes to each user; `basis` says what that rests on."""

    run: RunPlan
    delta: float

    @cached_property
    def basis(self) -> str:
        if self.run.plan.order == "complete":
            return "the next holder is uniform over all users"
        if self._at_worst:
            return "every step of the walk may be at the same user: its visits are not computed for a walk of this size"
        return "the next holder is uniform over the neighbours of the one before, on this graph"

    @cached_property
    def all_tokens(self) -> list[Law]:
        """For each user, in all tokens together."""
        return self._laws(self.run.plan.tokens)

    @cached_property
    def one_token(self) -> list[Law]:
        """For each user, in each of the tokens."""
        return self._laws(1)

    @property
    def _at_worst(self) -> bool:
        run = self.run
        return run.plan.order != "complete" and (run.graph is None or run.n > USERS_MAX or run.plan.steps > STEPS_MAX)

    def _laws(self, counted: int) -> list[Law]:
        run, plan = self.run, self.run.plan
        if self._at_worst:
            return [certain(counted * plan.steps)] * run.n
        if plan.order == "graph":
            assert run.graph is not None
            return graph_visits(run.graph.neighbours, plan.steps, counted, self.delta, spread=plan.tokens > 1)
        if plan.tokens > 1:
            return [binomial_visits(counted * plan.steps, 1.0 / run.n, 0, self.delta)] * run.n
        other = binomial_visits(plan.steps - 1, 1.0 / run.n, 0, self.delta)
        return [binomial_visits(plan.steps - 1, 1.0 / run.n, 1, self.delta), *[other] * (run.n - 1)]
