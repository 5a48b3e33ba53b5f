"""The noise that a user of gossip shares with neighbours, and the noise and dithers of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2pdp.core.draws import Draws
from p2pdp.core.ids import Peer
from p2pdp.core.values import LinearForm, snapped
from p2pdp.protocols.dithering import Dithers
from p2pdp.protocols.gossip.plan import AveragingPlan


class PairNoise:
    """The noise that one user shares with its neighbours: the lower-numbered end adds it, the other subtracts it.

    In the sum of all states it cancels with what the neighbour put in. So it is left over if the neighbour is gone
    before a state of its own counted here: then it is to be taken out of our state.
    """

    def __init__(self, plan: AveragingPlan, user: Peer) -> None:
        self._plan = plan
        self._user = user
        self._alone: dict[Peer, Any] = {}  # what is in our state and nothing that counted has the other end of
        self._before: dict[Peer, Any] = {}  # what that was before the last state that counted

    def __repr__(self) -> str:
        return f"PairNoise(user={self._user})"

    def added_to(
        self, value: Any, peers: Sequence[Peer], number: int, draws: Draws, *, weight: float = 1.0, kept: float = 1.0
    ) -> Any:
        """Return a contribution with the draws of this number with these peers.

        It enters the state with a `weight`, and `kept` is what is left of what was there.
        """
        plan = self._plan
        if plan.pair_noise is None:
            return value
        for peer in peers:
            drawn = draws.pair(peer, number, plan.pair_noise, plan.shape)
            drawn = drawn * (plan.step if self._user < peer else -plan.step)
            value = value + drawn
            for noise in (self._alone, self._before):
                noise[peer] = noise[peer] * kept + drawn * weight if peer in noise else drawn * weight
        return value

    def counted(self, peer: Peer) -> None:
        """Take note that a state counted that has the other end of all noise shared with this peer."""
        self._before.pop(peer, None)
        if peer in self._alone:
            self._before[peer] = self._alone.pop(peer)

    def uncounted(self, peer: Peer) -> None:
        """Take note that the last state that counted does not count after all."""
        if peer in self._before:
            self._alone[peer] = self._before.pop(peer)

    def left_over(self, peer: Peer) -> Any:
        """Return what is to be taken out of the state of a peer that is gone; None if that is nothing."""
        self._before.pop(peer, None)
        return self._alone.pop(peer, None)


class Sending(Dithers):
    """The messages of one user of gossip."""

    def __init__(self, plan: AveragingPlan) -> None:
        super().__init__(plan)
        self._plan = plan

    def values(self, state: Any, count: int, draws: Draws) -> list[Any]:
        """Return the values to send for one settled state, one per neighbour."""
        if self._plan.message_noise is None:
            return [self._as_sent(self.dithered(state, draws))] * count if count else []
        return [self._as_sent(self._noised(state, draws)) for _ in range(count)]

    def _as_sent(self, value: Any) -> Any:
        """Return a value on the fine grid as the plan has it sent."""
        if not self._plan.short or isinstance(value, LinearForm):
            return value
        from p2pdp.core.arrays import in_steps  # a process without vectors does not need it

        return in_steps(value, self._plan.fine_exponent)

    def _noised(self, state: Any, draws: Draws) -> Any:
        plan = self._plan
        assert plan.message_noise is not None
        if plan.dither is None:
            return snapped(state, plan.step) + draws.noise(plan.message_noise, plan.shape) * plan.step
        value = self.dithered(state, draws) + draws.noise(plan.message_noise, plan.shape) * plan.step
        return value if plan.step >= plan.fine else snapped(value, plan.fine)
