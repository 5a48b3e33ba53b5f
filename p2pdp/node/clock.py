"""The one clock of a live node: seconds since the epoch, never falling."""

from __future__ import annotations

import time


class Clock:
    def __init__(self) -> None:
        self._last_s = 0.0

    def now_s(self) -> float:
        self._last_s = max(self._last_s, time.time())
        return self._last_s
