"""Whether and when a process that ended is started again.

At once at first, then after waits that double up to `WAIT_MAX_S`, until it lived for `SETTLED_S`. A process
that failed by itself `RESTARTS_MAX` times is given up. One that somebody killed is not: nothing is wrong with
it, and if it stays away its peers go round it.
"""

from __future__ import annotations

import signal
from typing import Final

from p2pdp.cluster.children import INTERRUPTED

RESTARTS_MAX: Final = 20
WAIT_S: Final = 0.05
WAIT_MAX_S: Final = 2.0
SETTLED_S: Final = 5.0
_FROM_OUTSIDE: Final = (-signal.SIGKILL, -signal.SIGTERM, INTERRUPTED)


class Restarts:
    """Counts for each process by its number."""

    def __init__(self) -> None:
        self._failed: dict[int, int] = {}
        self._next_wait_s: dict[int, float] = {}

    def wait_s(self, who: int, code: int, lived_s: float) -> float | None:
        """How long to wait before it is started again; None if it is not."""
        if code not in _FROM_OUTSIDE:
            self._failed[who] = self._failed.get(who, 0) + 1
            if self._failed[who] > RESTARTS_MAX:
                return None
        wait_s = 0.0 if lived_s >= SETTLED_S else self._next_wait_s.get(who, 0.0)
        self._next_wait_s[who] = min(max(WAIT_S, 2 * wait_s), WAIT_MAX_S)
        return wait_s
