"""The one clock of a live node: seconds since the epoch, never falling."""

from __future__ import annotations

import time


class Clock:
    def __init__(self) -> None:
        self._last_s = 0.0

    def now_s(self) -> float:
        now_s = time.time()
        if now_s < self._last_s:
            return self._last_s
        self._last_s = now_s
        return now_s
