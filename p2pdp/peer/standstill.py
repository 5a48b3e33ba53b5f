"""The watch of one peer over itself: whether nothing moves any more, so that the run must stand still.

An item that somebody acknowledged and keeps is missed by nobody in particular, and nobody may tell where it is. But
everybody notices that nothing comes. A peer says so (`STALLED`) after `QUIET` patiences without a move, longer
than it takes to put out somebody who is silent. Where the schedule is public, machines say whom they wait for, and a
move is that this changes, or that the machine sends something: messages that lead to neither, such as more cover from a
neighbour that does not end its round, keep nobody waiting. Where machines do not say that, since it would tell a
route, each record is a move, and a visit may also be rare. Then much quiet is needed: `gaps` times the mean time
between visits so far, and before there were `VISITS_MIN` of them 2 n patiences. On a complete graph a walk whose hops
take a twentieth of a patience at most misses a user for so long with probability exp(-40); on sparse graphs, or with
slower hops, somebody may say so while it moves.
It is said again while that lasts, `TOLD_MAX` times at most.

The caller counts no records and messages that come of what was wrong, or of what a peer told itself: they are no sign
that anything moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from p2pdp.core.ids import Peer

TOLD_MAX: Final = 200
GAPS_MIN: Final = 40
QUIET: Final = 4  # patiences: longer than it takes to put out somebody who is silent (`peer/watch.py`)
VISITS_MIN: Final = 20  # from which a mean time between visits says something
_LIFE_RECORDS: Final = 5  # before the first visit
_VISIT_RECORDS: Final = 3  # at least


class Standstill:
    def __init__(
        self,
        patience_s: float,
        going: Callable[[], bool],
        waits_for: Callable[[], Collection[Peer]] | None = None,
        *,
        n: int = 1,
        gaps: int = GAPS_MIN,
    ) -> None:
        """`going` tells whether something should move; `waits_for` is there where the schedule is public."""
        self._going = going
        self._waits_for = waits_for
        self._patience_s = patience_s
        self._first_s = 2 * n * patience_s
        self._gaps = gaps
        self._every_s = patience_s / 4
        self._look_at_s: float | None = None
        self._went_s: float | None = None  # since when it is going
        self._count = 0
        self._state: tuple[int, ...] = ()
        self._since_s = 0.0  # since when there was no further move, as far as it was looked
        self._told = 0

    @property
    def waits_for(self) -> list[Peer]:
        return [] if self._waits_for is None else sorted(self._waits_for())

    def wake_at_s(self, now_s: float) -> float:
        """Return when `look` is due."""
        if self._look_at_s is None:
            self._look_at_s = now_s + self._every_s
        return self._look_at_s

    def begin_anew(self) -> None:
        """Count no time in which this process was away."""
        self._look_at_s = self._went_s = None

    def look(self, records: int, sends: int, now_s: float) -> bool:
        """Return whether it is to be said that nothing moves, after so many of both; not before it is due."""
        if now_s < self.wake_at_s(now_s):
            return False
        away = self._look_at_s is not None and now_s >= self._look_at_s + 2 * self._every_s
        self._look_at_s = now_s + self._every_s
        if not self._going():
            self._went_s = None
            return False
        if self._went_s is None:
            self._went_s = now_s - self._every_s
        state = (records,) if self._waits_for is None else (sends, *self.waits_for)
        if state != self._state or away:
            self._count, self._state, self._since_s, self._told = records, state, now_s, 0
        due = now_s >= self._since_s + self._enough_s(self._went_s) + self._told * self._patience_s
        if due and self._told < TOLD_MAX:
            self._told += 1
            return True
        return False

    def _enough_s(self, went_s: float) -> float:
        """Return how much quiet is enough."""
        least_s = QUIET * self._patience_s
        if self._waits_for is not None:
            return least_s
        visits = (self._count - _LIFE_RECORDS) // _VISIT_RECORDS
        if visits < VISITS_MIN:
            return max(least_s, self._first_s)
        return max(least_s, self._gaps * (self._since_s - went_s) / visits)
