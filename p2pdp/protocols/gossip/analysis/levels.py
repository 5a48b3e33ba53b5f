"""How much noise local and central privacy would need in place of a run of learning by gossip, at the same epsilon.

Local: everybody sees every noised gradient, and a mean of them all is what each step takes. Central: a trusted curator
takes the same steps, adds noise to the mean gradient, and all of its models may be seen. Both are accounted for as
the run's own headline is, by composition over the gradients. Sigma is None where no amount is known to be enough.
"""

from __future__ import annotations

import math

from p2pdp.assembly.pools import CENTRAL, LOCAL
from p2pdp.audit.ground import sensitivity_of
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.run_plan import RunPlan


def gossip_sigmas_of(run: RunPlan, epsilon: float | None, delta: float) -> dict[str, float | None]:
    """In data units: of each number of a user's gradient, and of each number of the mean gradient."""
    plan: GossipSgdPlan = run.plan
    if epsilon is None or not 0.0 < epsilon < math.inf or plan.noise.name == "none":
        return {LOCAL: None, CENTRAL: None}
    unit = math.ldexp(sensitivity_of(run), plan.grid_exponent) / gaussian.mu_of_curve(epsilon, delta)
    local = math.sqrt(plan.gradients) * unit
    return {LOCAL: local, CENTRAL: local / run.n}
