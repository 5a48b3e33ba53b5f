"""What a user of gossip sends of its state: with a dither, and with noise on messages where the spec asks for it."""

from __future__ import annotations

from typing import Any

from p2pdp.core.draws import Draws
from p2pdp.core.values import snapped
from p2pdp.protocols.dithering import Dithers
from p2pdp.protocols.gossip.plan import AveragingPlan


class Sending(Dithers):
    """One user's messages of gossip."""

    def __init__(self, plan: AveragingPlan) -> None:
        super().__init__(plan)
        self._plan = plan

    def values(self, state: Any, count: int, draws: Draws) -> list[Any]:
        """Return what is sent of one settled state to so many neighbours."""
        if self._plan.message_noise is None:
            return [self.dithered(state, draws)] * count if count else []
        return [self._noised(state, draws) for _ in range(count)]

    def _noised(self, state: Any, draws: Draws) -> Any:
        plan = self._plan
        assert plan.message_noise is not None
        if plan.dither is None:
            return snapped(state, plan.step) + draws.noise(plan.message_noise, plan.shape) * plan.step
        value = self.dithered(state, draws) + draws.noise(plan.message_noise, plan.shape) * plan.step
        return value if plan.step >= plan.fine else snapped(value, plan.fine)
