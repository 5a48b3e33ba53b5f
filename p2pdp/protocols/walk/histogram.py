"""`walk.histogram`: unbiased counts of categories, by a token on a ring or a random walk on the complete graph.

[CB20, Algorithm 2] with two corrections: the estimator is applied once, at the
end, and the uniform elements that hide the first contributions are a fixed number, put in once by the first
holder and once more by the last, who would otherwise be the only cover of the last contributions. The ring
takes ceil(gamma n) of them unless randomization is switched off; on the complete graph (section 4.2) each
report stands on its own randomization and there are none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms import randomized_response
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, Quiet, Work
from p2pdp.protocols.walk.sums import order_and_steps, sizes_of, visits_max, work_of
from p2pdp.protocols.walk.walking import Walk, WalkPlan, check_token, visits_bytes
from p2pdp.tasks.inputs import CategoryInputs, Inputs

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan
    from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis

TASKS: Final = {"histogram": ("randomized_response", "none")}


class WalkHistogram(Quiet):
    name = "walk.histogram"
    tasks = TASKS
    default_task = "histogram"

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> WalkPlan:
        assert spec.walk is not None
        assert spec.task.categories is not None
        categories = spec.task.categories
        order, steps = order_and_steps(spec.walk, spec.graph.kind, n)
        if order == "ring" and spec.walk.tokens > n:
            raise UsageError(f"[walk] tokens: a ring of {n} users carries at most {n} tokens")
        gamma = 0.0
        if spec.noise.mechanism == "randomized_response":
            assert spec.noise.epsilon is not None
            gamma = randomized_response.gamma_of(spec.noise.epsilon, categories)
        name = "randomized_response" if gamma > 0 else "none"
        return WalkPlan(
            order=order,
            n=n,
            steps=steps,
            tokens=spec.walk.tokens,
            noise=Mechanism(name, gamma, categories),
            shape=(categories,),
            spacing=1,
            dummies=math.ceil(gamma * n) if order == "ring" else 0,
            visits_max=visits_max(order, n, steps, spec.walk.tokens, facts),
        )

    def machine(self, plan: WalkPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Walk:
        return Walk(plan, user, neighbours, inputs)

    def inputs(self, plan: WalkPlan, rows: Any) -> tuple[CategoryInputs, list[Any]]:
        values = [int(value) for value in rows.rows]
        return self.inputs_again(plan, values), values

    def inputs_again(self, plan: WalkPlan, values: list[Any]) -> CategoryInputs:
        return CategoryInputs(values, plan.noise.categories)

    def check(self, plan: WalkPlan, message: Message) -> str | None:
        return check_token(plan, message)

    def publish(self, plan: WalkPlan, totals: Sequence[Any]) -> Any:
        return sum(totals[1:], start=totals[0])

    def estimate(self, plan: WalkPlan, published: Any, contributions: int) -> Estimate:
        gamma, dummies = plan.noise.scale, 2 * plan.dummies * plan.tokens
        if gamma == 0.0:
            return Estimate([float(count) for count in published], [0.0] * plan.noise.categories)
        counts = randomized_response.estimate(published, contributions, gamma, dummies)
        errors = randomized_response.standard_error(counts, contributions, gamma, dummies)
        return Estimate([float(count) for count in counts], [float(error) for error in errors])

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        return sizes_of(spec)

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        return work_of(spec)

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        return visits_bytes(run.plan)

    def analysis(self) -> HistogramAnalysis:
        from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis

        return HistogramAnalysis()


PROTOCOL = WalkHistogram()
