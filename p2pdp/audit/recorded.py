"""Whether the noise of a run is what its plan says: read from the recorded draws, never from the plan.

Some accounts are derived for noise of one scale, that of the plan. They ask here first, and are refused where the
records say something else. The linear account and the local ceiling take each draw's scale from its own record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from p2pdp.audit.ground import Finding, Ground
from p2pdp.core.claims import Refusal
from p2pdp.core.draws import Mechanism
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan

UNLIKE_PLAN: Final = "user {}: the recorded draws are not those of the plan, and this account takes all noise to be so"


def unlike_plan(ground: Ground) -> str | None:
    """Why accounts that take all noise to be as planned are refused; None where the records agree with the plan.

    Every contribution must be protected by the noise that the plan gives a contribution; of gossip, all other draws
    that were seen must be noise of messages.
    """
    planned = _planned(ground)
    transcript, plan = ground.transcript, ground.run.plan
    for user, noise in transcript.noise.items():
        messages = not isinstance(plan, AveragingPlan) or noise.others <= _of_messages(plan)
        if any(recorded[: len(planned)] != planned for recorded in noise.own) or not messages:
            return UNLIKE_PLAN.format(user)
    return None


def refused(observers: Sequence[str], method: str, reason: str) -> Finding:
    """A finding that is nothing but one reason, for some observers."""
    return Finding(refusals=[Refusal(observer, method, reason) for observer in observers])


def _planned(ground: Ground) -> tuple[Mechanism, ...]:
    plan = ground.run.plan
    if isinstance(plan, ShufflePlan):
        return tuple(plan.randomizer.mechanisms)
    return () if plan.noise.name == "none" else (plan.noise,)


def _of_messages(plan: AveragingPlan) -> set[Mechanism]:
    found = set(plan.mechanisms) - {plan.noise}
    return found | {plan.noise} if plan.message_noise == plan.noise else found
