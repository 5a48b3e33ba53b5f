"""Who is owed an acknowledgement, and when what is owed goes out by itself.

What is owed goes along with the next message to that peer. Otherwise it goes out at a moment of the clock: these are
a quarter of a tick apart, and of those within a tick after the message came the last one is taken. So acknowledgements
that are owed at about the same time share a wake, and still the moment of each follows from when its own message came:
if it followed from what is owed to others, it would tell when others sent something.
"""

from __future__ import annotations

from math import floor
from typing import Final

from p2pdp.core.ids import Peer

_MOMENTS: Final = 4  # in a tick


class Dues:
    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._step_s = tick_s / _MOMENTS
        self.since_s: dict[Peer, float] = {}
        self.tick_at_s: float | None = None

    def owe(self, peer: Peer, now_s: float) -> None:
        """The peer sent something."""
        due_s = self._due_s(self.since_s.setdefault(peer, now_s))
        if self.tick_at_s is None or self.tick_at_s > due_s:
            self.tick_at_s = due_s

    def _due_s(self, since_s: float) -> float:
        return floor((since_s + self._tick_s) / self._step_s) * self._step_s

    def all(self) -> list[Peer]:
        """Everybody, at the end."""
        peers = sorted(self.since_s)
        self.since_s.clear()
        self.tick_at_s = None
        return peers

    def ripe(self, now_s: float) -> list[Peer]:
        """On a tick: who is to get its acknowledgement by now."""
        peers = sorted(peer for peer, since_s in self.since_s.items() if self._due_s(since_s) <= now_s)
        for peer in peers:
            del self.since_s[peer]
        self.tick_at_s = self._due_s(min(self.since_s.values())) if self.since_s else None
        return peers
