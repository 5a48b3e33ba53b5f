"""Guardians: who watches over an item (a token, a report) until its next holder has passed it on.

Whoever passes an item to a peer is its guardian until that peer reports that *its* successor has
acknowledged. Only facts about time and acknowledgement live here, outside the ledger: losing them
in a crash makes a guardian watch longer, never shorter. What decides whether an item is lost is
recorded, and lives in `protocols/participant.py` and `services/bootstrap.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.core.step import Custody
from p2pdp.host.link import Link

Report = tuple[Peer, int, int]  # to this guardian: this item has settled at this step
# Of one item: its custody as it came, from whom; as it went, to whom, in which message of the link, and when.
Hop = tuple[tuple[int, int], Peer, tuple[int, int], Peer, int, float]
HOPS_MAX: Final = 64


@dataclass(slots=True)
class Origin:
    """Who passed an item to us, the step at which we hold it, and whether our successor has it."""

    guardian: Peer
    step: int
    settled: bool = False


@dataclass(slots=True)
class Watch:
    """We passed `item` to `peer`, who holds it at `step`; since then we are its guardian."""

    item: int
    step: int
    peer: Peer
    number: int  # of the link message that carried it
    since_s: float
    complained: bool = False


class Guardian:
    """All items that this peer held last or watches over: at most one entry an item."""

    def __init__(self) -> None:
        self._origins: dict[int, Origin] = {}
        self._settled: dict[Peer, dict[int, int]] = {}  # guardian -> item -> last step at which it settled
        self._news: dict[tuple[Peer, int], int] = {}  # guardian, item -> step, since reports were last taken
        self._watches: dict[int, Watch] = {}
        self.hops: list[Hop] = []  # that were not told yet: they wait until somebody asks, or more have gathered

    def catch_up(self) -> None:
        """As if each had been told at once; of visits that others followed only the report is left."""
        hops, self.hops = self.hops, []
        latest: dict[int, Hop] = {}
        news = self._news
        for hop in hops:
            item = hop[0][0]
            before = latest.get(item)
            if before is None:
                self._came_round(item)
            else:
                news[before[1], item] = before[0][1]
            latest[item] = hop
        for item, (taken, sender, given, to, number, now_s) in latest.items():
            self._origins[item] = Origin(sender, taken[1])
            self._watches[given[0]] = Watch(given[0], given[1], to, number, now_s)

    def _came_round(self, item: int) -> None:
        """If the item was here before, that earlier visit has settled, and nobody need watch who got it then."""
        self._watches.pop(item, None)
        origin = self._origins.get(item)
        if origin is not None and not origin.settled:
            self._news[origin.guardian, item] = origin.step

    @property
    def watches(self) -> dict[int, Watch]:
        if self.hops:
            self.catch_up()
        return self._watches

    def received(self, custody: Custody, sender: Peer) -> None:
        """Takes an item."""
        self.catch_up()
        item, step = custody
        self._came_round(item)
        self._origins[item] = Origin(sender, step)

    def passed(self, custody: Custody, to: Peer, number: int, now_s: float) -> None:
        item, step = custody
        self.watches[item] = Watch(item, step, to, number, now_s)

    def acknowledged(self, peer: Peer, number: int) -> None:
        """The peer has everything up to `number`."""
        for watch in self.watches.values():
            if watch.peer == peer and watch.number <= number:
                self._settle(watch.item)

    def _settle(self, item: int) -> None:
        origin = self._origins.get(item)
        if origin is not None and not origin.settled:
            origin.settled = True
            self._news[origin.guardian, item] = origin.step

    def take_reports(self) -> list[Report]:
        """What has settled since they were last taken; of each item the last step is enough for a guardian."""
        self.catch_up()
        reports = [(guardian, item, step) for (guardian, item), step in self._news.items()]
        for guardian, item, step in reports:
            self._settled.setdefault(guardian, {})[item] = step
        self._news.clear()
        return reports

    def settled_for(self, guardian: Peer) -> list[tuple[int, int]]:
        """All that has settled for this guardian, for when an earlier report may have been lost."""
        self.catch_up()
        news = {item: step for (told, item), step in self._news.items() if told == guardian}
        return sorted((self._settled.get(guardian, {}) | news).items())

    def settled(self, peer: Peer, item: int, step: int) -> None:
        watch = self.watches.get(item)
        if watch is not None and watch.peer == peer and watch.step <= step:
            del self.watches[item]

    def begin_anew(self, now_s: float) -> None:
        """After a restart: our own absence is not the silence of others."""
        for watch in self.watches.values():
            watch.since_s = now_s

    def dismiss(self, item: int, step: int) -> None:
        """The item went on from whoever we had passed it to at this step; we may have had it again since."""
        watch = self.watches.get(item)
        if watch is not None and watch.step <= step:
            del self.watches[item]

    def adopted(self, item: int, step: int, guardian: Peer) -> None:
        """The guardian of our visit at this step is out, and this one takes its place."""
        self.catch_up()
        origin = self._origins.get(item)
        if origin is None or origin.step > step or origin.settled:
            self._news[guardian, item] = step
        else:
            origin.guardian = guardian

    def look(self, link: Callable[[Peer], Link], patience_s: float, now_s: float) -> tuple[list[Watch], list[Peer]]:
        """Of whom to complain, each time that somebody falls silent, and whom to poke."""
        silent, quiet = [], []
        for watch in sorted(self.watches.values(), key=lambda watch: watch.item):
            silence_s = now_s - max(watch.since_s, link(watch.peer).last_heard_s)
            if silence_s >= patience_s and not watch.complained:
                silent.append(watch)
            watch.complained = silence_s >= patience_s
            if silence_s >= patience_s / 2:
                quiet.append(watch.peer)
        return silent, quiet

    def spare(self, peer: Peer, now_s: float) -> None:
        """The peer was shown to be alive: its patience begins anew."""
        for watch in self.watches.values():
            if watch.peer == peer:
                watch.since_s = now_s
                watch.complained = False
