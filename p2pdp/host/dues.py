"""Who is owed an acknowledgement or a report, and when what no message took along goes out by itself.

What is owed goes along with the next message to that peer. A tick comes when the oldest debt has waited for as
long as it may, and sends with it what has waited nearly as long, one frame a peer; so on busy links hardly any frame
is sent for it.
What acknowledgements settle (see `custody.py`) is worked out on the tick too, together.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.host.custody import Guardian
from p2pdp.host.link import REPORTED_MAX, Link

_NEARLY: Final = 0.75  # of the time that is allowed


class Dues:
    def __init__(self, me: Peer, guardian: Guardian, tick_s: float) -> None:
        self._me = me
        self._guardian = guardian
        self._tick_s = tick_s
        self.since_s: dict[Peer, float] = {}
        self.progressed: set[Peer] = set()  # whose acknowledgements may have settled something since the last tick
        self.tick_at_s: float | None = None

    def owe(self, peer: Peer, now_s: float) -> None:
        self.since_s.setdefault(peer, now_s)
        self.tick_soon(now_s)

    def tick_soon(self, now_s: float) -> None:
        if self.tick_at_s is None:
            self.tick_at_s = now_s + self._tick_s

    def take_news(self, links: dict[Peer, Link], now_s: float) -> None:
        """What has settled since the last time becomes due."""
        for peer in self.progressed:
            self._guardian.acknowledged(peer, links[peer].acknowledged)
        self.progressed.clear()
        for guardian, item, step in self._guardian.take_reports():
            if guardian != self._me and 0 <= item <= REPORTED_MAX and 0 <= step <= REPORTED_MAX:
                links.setdefault(guardian, Link(guardian)).settled[item] = step  # others no honest peer ever had
                self.since_s.setdefault(guardian, now_s)

    def all(self) -> list[Peer]:
        """Everybody, at the end."""
        peers = sorted(self.since_s)
        self.since_s.clear()
        self.tick_at_s = None
        return peers

    def ripe(self, now_s: float) -> list[Peer]:
        """On a tick: whoever has waited for most of the time that is allowed."""
        long_s = _NEARLY * self._tick_s
        peers = sorted(peer for peer, since_s in self.since_s.items() if now_s - since_s >= long_s)
        for peer in peers:
            del self.since_s[peer]
        self.tick_at_s = min(self.since_s.values()) + self._tick_s if self.since_s else None
        return peers
