"""Claims about descent by a walk, given the realised path: amplification by iteration, where steps contract.

Every condition is checked; where one does not hold the account refuses, and the local ceiling stands. What the rounding
of floats may tell beside is added to each claim (`privacy/descent_rounding.py`).
"""

from __future__ import annotations

from typing import Final

from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.pair_claims import account_of_pairs
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.core.claims import Method, Observer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.rounding import rounding_of
from p2pdp.protocols.walk.analysis.traces import TraceAuditor
from p2pdp.protocols.walk.sgd import SgdPlan

CONTRACTS: Final = (
    "no step moves two models further apart: the loss is convex and smooth, gradients are clipped such that they stay "
    "those of a convex loss, rates are at most 2/smoothness, and noise comes before the projection on a convex set"
)
PROMISED: Final = (
    "the objective is the caller's own: convex, Lipschitz and smooth as it promises to be, and it keeps no state"
)


def iteration_account(ground: Ground) -> Finding:
    plan = ground.run.plan
    if not isinstance(plan, SgdPlan):
        return Finding()
    reason = why_not(plan) or unlike_plan(ground)
    rounding = reason or rounding_of(ground)
    if isinstance(rounding, str):
        observers = (
            [Observer.NODE] * (ground.run.n > 1)
            + [Observer.CURATOR, Observer.PUBLIC]
            + [Observer.COALITION] * bool(ground.colluders)
        )
        return refused(observers, Method.ITERATION, rounding)
    return account_of_pairs(
        ground,
        TraceAuditor(ground.transcript, plan),
        Method.ITERATION,
        *terms(ground.run),
        *rounding.said,
        rounding=2.0 * rounding.nu,
        ceilings=rounding.ceilings,
    )


def why_not(plan: SgdPlan) -> str | None:
    """Why nothing is claimed by iteration of a run of this plan."""
    return plan.descent.why_not_contracting(plan.rate)  # no later step is larger


def terms(run: RunPlan) -> tuple[str, ...]:
    """What such claims rest on beside the noise."""
    return (CONTRACTS, *([PROMISED] if run.spec.task.kind == "own" else ()))
