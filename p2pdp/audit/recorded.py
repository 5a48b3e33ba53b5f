"""Whether the noise of a run is what its plan says: read from the recorded draws, never from the plan.

Some accounts are derived for noise of one scale, that of the plan. They ask here first, and are refused where the
records say something else. The linear account and the local ceiling take each draw's scale from its own record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from p2pdp.audit.ground import Finding, Ground
from p2pdp.core.claims import Observer, Refusal

UNLIKE_PLAN: Final = "user {}: the recorded draws are not those of the plan, and this account takes all noise to be so"


def unlike_plan(ground: Ground) -> str | None:
    """Why accounts that take all noise to be as planned are refused; None where the records agree with the plan.

    Every contribution must be protected by the noise that the plan gives a contribution, and all other draws that were
    seen must be of the kinds that it names.
    """
    transcript, plan = ground.transcript, ground.run.plan
    for user, noise in transcript.noise.items():
        beside = plan.other_draws is None or noise.others <= plan.other_draws
        if any(recorded[: len(plan.protection)] != plan.protection for recorded in noise.own) or not beside:
            return UNLIKE_PLAN.format(user)
    return None


def refused(observers: Sequence[Observer], method: str, reason: str) -> Finding:
    """A finding that is nothing but one reason, for some observers."""
    return Finding(refusals=[Refusal(observer, method, reason) for observer in observers])
