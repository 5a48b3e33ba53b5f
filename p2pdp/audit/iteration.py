"""Claims about descent by a walk, given the realised path: amplification by iteration, where steps contract.

Every condition is checked; where one does not hold the account refuses, and the local ceiling stands.
"""

from __future__ import annotations

from typing import Final

from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.pair_claims import account_of_pairs
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.audit.traces import TraceAuditor
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk_sgd import SgdPlan

ITERATION: Final = "iteration"
CONTRACTS: Final = (
    "no step moves two models further apart: the loss is convex and smooth, gradients are clipped such that they stay "
    "those of a convex loss, rates are at most 2/smoothness, and noise comes before the projection on a convex set"
)
PROMISED: Final = (
    "the objective is the caller's own: convex, Lipschitz and smooth as it promises to be, and it keeps no state"
)
ROUNDED: Final = (
    "models are taken to be real numbers: the last bits of a float may tell more of the steps between two visits than "
    "the model does; claims that take every noised gradient as seen do not rest on this"
)


def iteration_account(ground: Ground) -> Finding:
    plan = ground.run.plan
    if not isinstance(plan, SgdPlan):
        return Finding()
    reason = why_not(plan) or unlike_plan(ground)
    if reason is not None:
        observers = ["node"] * (ground.run.n > 1) + ["curator", "public"] + ["coalition"] * bool(ground.colluders)
        return refused(observers, ITERATION, reason)
    return account_of_pairs(ground, TraceAuditor(ground.transcript, plan), ITERATION, *terms(ground.run))


def why_not(plan: SgdPlan) -> str | None:
    """Why nothing is claimed by iteration of a run of this plan."""
    return plan.descent.why_not_contracting(plan.rate)  # no later step is larger


def terms(run: RunPlan) -> tuple[str, ...]:
    """What such claims rest on beside the noise."""
    return (CONTRACTS, ROUNDED, *([PROMISED] if run.spec.task.kind == "own" else ()))
