"""Who is owed an acknowledgement or a report, and when what no message took along goes out by itself.

What is owed goes along with the next message to that peer. A tick comes when the oldest debt has waited for as
long as it may, and sends with it what has waited nearly as long, one frame a peer; so on busy links hardly any frame
is sent for it.

What acknowledgements settle (see `custody.py`) is worked out on a tick too, and not on each: a guardian loses its
patience much later, asks before it does, and of an item that came round meanwhile only the last report is left.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.host.custody import Guardian
from p2pdp.host.link import Link
from p2pdp.host.payloads import REPORTED_MAX

_NEARLY: Final = 0.75  # of the time that is allowed


class Dues:
    def __init__(self, me: Peer, guardian: Guardian, tick_s: float, report_s: float) -> None:
        self._me = me
        self._guardian = guardian
        self._tick_s = tick_s
        self._report_s = report_s
        self.report_at_s: float | None = None  # when what has settled becomes due
        self.since_s: dict[Peer, float] = {}
        self.progressed: set[Peer] = set()  # whose acknowledgements may have settled something since the last tick
        self.tick_at_s: float | None = None

    def owe(self, peer: Peer, now_s: float) -> None:
        """It sent something, which may have come round and settled an earlier visit."""
        self._begin(peer, now_s)
        if self.report_at_s is None:
            self.settles(now_s + self._report_s)

    def _begin(self, peer: Peer, now_s: float) -> None:
        """Whatever is owed, a tick comes for it."""
        self.since_s.setdefault(peer, now_s)
        if self.tick_at_s is None or self.tick_at_s > now_s + self._tick_s:
            self.tick_at_s = now_s + self._tick_s

    def progress(self, peer: Peer, now_s: float, *, soon: bool = False) -> None:
        """It acknowledged something, by which something may have settled."""
        self.progressed.add(peer)
        if soon or self.report_at_s is None:
            self.settles(now_s + (self._tick_s if soon else self._report_s))

    def settles(self, at_s: float) -> None:
        """Something may have settled, and is to be due by then."""
        if self.report_at_s is None or at_s < self.report_at_s:
            self.report_at_s = at_s
            if self.tick_at_s is None or at_s < self.tick_at_s:
                self.tick_at_s = at_s

    def take_news(self, links: dict[Peer, Link], now_s: float) -> None:
        """What has settled since the last time becomes due."""
        self.report_at_s = None
        for peer in self.progressed:
            self._guardian.acknowledged(peer, links[peer].acknowledged)
        self.progressed.clear()
        for guardian, item, step in self._guardian.take_reports():
            if guardian != self._me and 0 <= item <= REPORTED_MAX and 0 <= step <= REPORTED_MAX:
                links.setdefault(guardian, Link(guardian)).settled[item] = step  # others no honest peer ever had
                self._begin(guardian, now_s)

    def all(self) -> list[Peer]:
        """Everybody, at the end."""
        peers = sorted(self.since_s)
        self.since_s.clear()
        self.tick_at_s = None
        return peers

    def ripe(self, links: dict[Peer, Link], now_s: float) -> list[Peer]:
        """On a tick: whoever has waited for most of the time that is allowed."""
        if self.report_at_s is not None and now_s >= self.report_at_s:
            self.take_news(links, now_s)
        long_s = _NEARLY * self._tick_s
        peers = sorted(peer for peer, since_s in self.since_s.items() if now_s - since_s >= long_s)
        for peer in peers:
            del self.since_s[peer]
        oldest_s = min(self.since_s.values()) + self._tick_s if self.since_s else None
        wanted_s = [at_s for at_s in (oldest_s, self.report_at_s) if at_s is not None]
        self.tick_at_s = min(wanted_s, default=None)
        return peers
