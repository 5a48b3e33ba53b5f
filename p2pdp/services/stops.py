"""Complaints and standstills: the reasons for which bootstrap stops a run that cannot go on.

Boxes are not signed, so nobody can prove what somebody else sent. Of two users of whom one refuses what the other
sent, either may be the liar, and with a token that was doubled neither need be. So a user's word puts nobody out,
however many say the same: liars may agree. A message of the wrong form, or with a value that is out of bounds, is
lost, and probably needed: within a patience it ends the run by the names of both, unless the run ends of itself or one
of them is put out for another reason. One that was impossible at the moment may be needless. It is named if the run
comes to stand still. What the curator or bootstrap itself refuses as malformed
puts its sender out, since honest users send no such message, whatever they were sent before; a bad value says nothing
of its sender, who may have got it from a liar.

A standstill is believed if all live users but a quarter (at least one) say within two patiences that nothing comes to
them: a liar that keeps an item says so least of all, and fewer liars than that cannot end a run that moves. Where more
collude and keep silent about it, half of the users are believed after `LONG` patiences. Where the
schedule is public each also says whom it waits for. Whom the curator waits for, and who says itself that it waits for
nobody, is put out, and the run goes on: nobody else's word is needed for that. Otherwise the run ends with the names of
all who were waited for by others and said of nobody that they wait for them, or of all who were waited for. Where
others wait for a peer, an older word of that peer counts too, since newer ones may have been lost on their way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import Final, NamedTuple

from p2pdp.core.endings import DISPUTE, STANDSTILL, TOO_FEW, Stopped
from p2pdp.core.ids import CURATOR, Peer

LONG: Final = 8.0  # patiences for which half of the users have to say that nothing comes
RECENT: Final = 2.0  # patiences for which a word counts as said at present
OLDER: Final = 4.0  # patiences for which it still tells whom a peer waits for: at least as long as it had waited then


class Standing(NamedTuple):
    """The last word of one peer on a standstill: when, whom it waits for, and since when it has been saying so."""

    at_s: float
    waits_for: frozenset[Peer]
    since_s: float


class Stops:
    def __init__(self, patience_s: float, *, curator_knows: bool = False) -> None:
        """`curator_knows` says that users finish one by one, so that the curator knows who has not."""
        self._patience_s = patience_s
        self._curator_knows = curator_knows
        self._disputes: dict[tuple[Peer, Peer], float] = {}  # who refused what whom sent -> until when that may last
        self._standing: dict[Peer, Standing] = {}
        self._moved_s = 0.0  # when bootstrap last did something about silence

    def disputed(self, by: Peer, about: Peer, now_s: float, *, needless: bool) -> None:
        """Take note of a complaint that proves nothing."""
        until_s = inf if needless else now_s + self._patience_s
        self._disputes[by, about] = min(until_s, self._disputes.get((by, about), inf))

    def stands(self, peer: Peer, waits_for: Collection[Peer], now_s: float) -> None:
        """Take note that nothing comes to a peer any more."""
        before = self._recent(now_s).get(peer)
        self._standing[peer] = Standing(now_s, frozenset(waits_for), now_s if before is None else before.since_s)

    def moves(self, now_s: float) -> None:
        """Take note that silence was dealt with, which may set the run going again."""
        self._moved_s = now_s
        self._standing.clear()

    def out(self, peer: Peer, now_s: float) -> None:
        """Forget what concerns a user that is out: what it held is settled without it."""
        self._disputes = {pair: until_s for pair, until_s in self._disputes.items() if peer not in pair}
        self.moves(now_s)

    @property
    def wake_at_s(self) -> float | None:
        until_s = min(self._disputes.values(), default=inf)
        return None if until_s == inf else until_s

    def due(self, now_s: float) -> Stopped | None:
        """Return why the run is to be stopped for a dispute by now."""
        at_s = self.wake_at_s
        if at_s is None or now_s < at_s:
            return None
        return self._named()

    def _named(self) -> Stopped:
        return Stopped(DISPUTE, [list(pair) for pair in sorted(self._disputes)])

    def stands_still(self, live: AbstractSet[Peer], now_s: float) -> bool:
        """Return whether the run is known to stand still.

        Only who says so again counts: what came together was said while bootstrap was away, and may be over. Users who
        have done their part hear nothing while the curator still does; it may know best for whom it waits, so they have
        to say so for longer while it says nothing. Where it alone knows, they wait for as long as it takes to notice
        that nothing comes, since it may have started again.
        """
        if now_s < self._moved_s + 2 * self._patience_s:
            return False
        recent = self._recent(now_s)
        naming = sum(peer in live and bool(one.waits_for) for peer, one in recent.items())
        alone = self._curator_knows and naming <= max(1, len(live) // 4)  # so few may be liars
        least_s = (0.5 if CURATOR in recent else OLDER + 1.0 if alone else 2.0) * self._patience_s
        for_s = [one.at_s - one.since_s for peer, one in recent.items() if peer in live]
        if 2 * sum(said_s >= LONG * self._patience_s for said_s in for_s) >= max(1, len(live)):
            return True
        saying = sum(said_s >= least_s for said_s in for_s)
        return saying >= max(1, len(live) - max(1, len(live) // 4))

    def withholding(self, live: AbstractSet[Peer], now_s: float) -> list[Peer]:
        """Return whom the curator waits for though they say that they wait for nobody."""
        standing = self._recent(now_s)
        awaited = standing[CURATOR].waits_for if CURATOR in standing else frozenset()
        return sorted(peer for peer in awaited & live & standing.keys() if not self._waits(peer, live, standing))

    def standstill(self, live: AbstractSet[Peer], now_s: float) -> Stopped:
        """Return what is to be said of a standstill; who was late says less than who is waited for."""
        standing = self._recent(now_s)
        awaited = {who for one in standing.values() for who in one.waits_for}
        older = self._recent(now_s, OLDER)
        standing |= {peer: one for peer, one in older.items() if peer in awaited - standing.keys()}
        by: dict[Peer, list[Peer]] = {}
        for peer, one in sorted(standing.items()):
            for who in one.waits_for & live:
                by.setdefault(who, []).append(peer)
        if self._disputes and (not by or self.wake_at_s is not None):
            return self._named()
        ends = [[who, *waiting] for who, waiting in sorted(by.items()) if not self._waits(who, live, standing)]
        return Stopped(STANDSTILL, ends or [[who, *waiting] for who, waiting in sorted(by.items())])

    def _recent(self, now_s: float, patiences: float = RECENT) -> dict[Peer, Standing]:
        return {peer: one for peer, one in self._standing.items() if now_s < one.at_s + patiences * self._patience_s}

    @staticmethod
    def _waits(peer: Peer, live: AbstractSet[Peer], standing: dict[Peer, Standing]) -> bool:
        return peer in standing and bool(standing[peer].waits_for & live)


def too_few(out: Sequence[Peer]) -> Stopped:
    """Return what is said of a run that has too few users left."""
    return Stopped(TOO_FEW, [[peer] for peer in sorted(out)])
