"""Who is owed an acknowledgement, and when what is owed goes out by itself.

What is owed goes along with the next message to that peer. A tick comes when the oldest debt has waited for as
long as it may, and sends with it what has waited nearly as long, one frame a peer; so on busy links hardly any frame
is sent for it.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core.ids import Peer

_NEARLY: Final = 0.75  # of the time that is allowed


class Dues:
    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self.since_s: dict[Peer, float] = {}
        self.tick_at_s: float | None = None

    def owe(self, peer: Peer, now_s: float) -> None:
        """The peer sent something."""
        self.since_s.setdefault(peer, now_s)
        if self.tick_at_s is None or self.tick_at_s > now_s + self._tick_s:
            self.tick_at_s = now_s + self._tick_s

    def all(self) -> list[Peer]:
        """Everybody, at the end."""
        peers = sorted(self.since_s)
        self.since_s.clear()
        self.tick_at_s = None
        return peers

    def ripe(self, now_s: float) -> list[Peer]:
        """On a tick: who has waited for most of the time that is allowed."""
        long_s = _NEARLY * self._tick_s
        peers = sorted(peer for peer, since_s in self.since_s.items() if now_s - since_s >= long_s)
        for peer in peers:
            del self.since_s[peer]
        self.tick_at_s = min(self.since_s.values()) + self._tick_s if self.since_s else None
        return peers
