"""Whom a peer meets in each round of a graph that changes: coins of pairs, tossed with what their channel shares.

Making the secrets takes one key agreement with everybody else, when the first coin is tossed. Whoever has no valid
entry in the roster is met by nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from p2pdp.core.ids import Peer, is_user
from p2pdp.crypto.channel import Channel, ChannelError
from p2pdp.crypto.pair_coins import PairCoins
from p2pdp.crypto.roster import RosterError
from p2pdp.host.seat import Seat


class Meetings:
    def __init__(self, seat: Seat, channel: Callable[[Peer], Channel]) -> None:
        self._seat = seat
        self._channel = channel

    def toss(self, number: int, coin: float) -> list[Peer]:
        return self._coins.neighbours_in(number, coin)

    @cached_property
    def _coins(self) -> PairCoins:
        secrets: dict[Peer, bytes] = {}
        for peer in filter(is_user, self._seat.peers()):
            try:
                secrets[peer] = self._channel(peer).pair_secret
            except (ChannelError, RosterError):
                continue
        return PairCoins(secrets)
