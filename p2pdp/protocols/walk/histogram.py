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
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.mechanisms import randomized_response
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact
from p2pdp.protocols.walk.options import WalkDefaults, course_of
from p2pdp.protocols.walk.walking import Walk, WalkPlan, check_token
from p2pdp.tasks.inputs import CategoryInputs, Inputs

if TYPE_CHECKING:
    from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis

TASKS: Final = {"histogram": ("randomized_response", "none")}


class WalkHistogram(WalkDefaults):
    name = "walk.histogram"
    tasks = TASKS
    default_task = "histogram"

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> WalkPlan:
        assert spec.task.categories is not None
        categories = spec.task.categories
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

    def analysis(self) -> HistogramAnalysis:
        from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis

        return HistogramAnalysis()


PROTOCOL = WalkHistogram()
