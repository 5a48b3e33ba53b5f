"""The clock of a live node, and the end of a run's time (`core/expiry.py`).

The clock counts seconds since the epoch and never falls. A process stops when its run expires, and a later start is
refused. Expiry is checked at least every `LOOK_S`, because the machine's clock may be set, and a machine may sleep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.expiry import Expired, check_not_expired, expires_s
from p2pdp.core.spec import RunPart

LOOK_S: Final = 60.0


class Clock:
    def __init__(self) -> None:
        self._last_s = 0.0

    def now_s(self) -> float:
        now_s = time.time()
        if now_s < self._last_s:
            return self._last_s
        self._last_s = now_s
        return now_s


class Expiry:
    """Call `end` once when the run's time is over. To be made within a running event loop."""

    def __init__(self, now_s: Callable[[], float], end: Callable[[BaseException], None]) -> None:
        self._now_s = now_s
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, run: RunPart) -> None:
        """Watch from now on; if the time is over already, call `end` at once."""
        self.stop()
        at_s, now_s = expires_s(run), self._now_s()
        if at_s is None:
            return
        try:
            check_not_expired(run, now_s)
        except Expired as error:
            self._end(error)
        else:
            self._timer = asyncio.get_running_loop().call_later(min(at_s - now_s, LOOK_S), self.watch, run)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def refuse_expired(run: RunPart, run_keys: Iterable[Path]) -> None:
    """Raise `Expired` for a run that cannot be resumed because its time is over, and unlink its keys."""
    try:
        check_not_expired(run, time.time())
    except Expired:
        for key in run_keys:
            key.unlink(missing_ok=True)
        raise


def check_expires(run: RunPart) -> None:
    """Refuse to begin a run whose time is over."""
    at_s = expires_s(run)
    if at_s is not None and time.time() >= at_s:
        raise UsageError(f"[run] expires: {run.expires} has passed; name a later moment or leave it out")
