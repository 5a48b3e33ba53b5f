"""The clock of processes that a test sets forward: a run expires once the test has seen what it wants, not before."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

from p2pdp.node import clock

EXPIRES = 'expires = "2999-01-01T00:00:00Z"'
_AHEAD_S = 1e11  # three thousand years
_LOOK_S = 0.02


def set_forward(place: Path) -> None:
    """Let the time of everybody who lives by the clock in this place pass."""
    (place / "forward").touch()


def live_by(place: Path) -> None:
    """Have this process, and those that it forks, often look at the clock in this place."""

    def now_s() -> float:
        return time.time() + (_AHEAD_S if (place / "forward").exists() else 0.0)

    clock.time = SimpleNamespace(time=now_s, monotonic=time.monotonic)  # type: ignore[assignment]
    clock.LOOK_S = _LOOK_S  # type: ignore[misc]
