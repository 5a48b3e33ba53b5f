"""The clocks of a live node, how busy its machine is, and the end of a run's time (`core/expiry.py`).

Clocks count seconds since the epoch and never fall. `Clock` tells the time. `LoopClock` leaves out the time in which
its event loop was late, so that nobody is found silent, late or gone because we did not look: users and bootstrap
count their waits by it, and record its times.

A process stops when its run expires, and a later start is refused. Expiry is checked at least every `LOOK_S`, because
the machine's clock may be set, and a machine may sleep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from p2pdp.core.errors import UsageError
from p2pdp.core.expiry import Expired, check_not_expired, expires_s
from p2pdp.core.spec import RunPart

LOOK_S: Final = 60.0
BEAT_S: Final = 0.25
LATE_S: Final = 0.25  # how late a beat may be before that is left out
ROUNDING_S: Final = 1e-6  # more than sums of such numbers are wrong by
WINDOW_S: Final = 1.0  # over which it is measured how busy the machine is, at least
IDLE_SHARE: Final = 0.01  # of the time: less waiting than this is not worth mentioning
_SCHEDULED: Final = Path("/proc/thread-self/schedstat")


class Clock:
    def __init__(self) -> None:
        self._last_s = 0.0

    def now_s(self) -> float:
        now_s = time.time()
        if now_s < self._last_s:
            return self._last_s
        self._last_s = now_s
        return now_s


class OnTime:
    """Seconds without those by which a beat was late, as a function of a steady clock's, `steady_s`.

    Guarantee: from one beat to the next they go on by `BEAT_S + LATE_S` at most, and no faster than the steady clock.
    """

    def __init__(self, begin_s: float, steady_s: float) -> None:
        self._ahead_s = begin_s - steady_s
        self._limit_s = begin_s + BEAT_S + LATE_S

    def at(self, steady_s: float) -> float:
        now_s, limit_s = steady_s + self._ahead_s, self._limit_s
        return now_s if now_s < limit_s else limit_s  # noqa: FURB136  (each hop asks, and `min` takes twice as long)

    def beat(self, steady_s: float) -> None:
        now_s = self.at(steady_s)
        if now_s >= self._limit_s:
            self._ahead_s = now_s - steady_s + ROUNDING_S
        self._limit_s = now_s + BEAT_S + LATE_S


class LoopClock(Clock):
    """The clock of everything in one event loop, in which a beat comes every `BEAT_S`.

    What is left out is the time in which the loop was busy for long, or its process or machine was stopped. The clock
    is not set with the system's. `of_loop` returns that of the running loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._on_time = OnTime(time.time(), time.monotonic())
        self._go_on()

    @classmethod
    def of_loop(cls) -> LoopClock:
        loop = asyncio.get_running_loop()
        found = _CLOCKS.get(loop)
        if found is None:
            found = _CLOCKS[loop] = cls()
        return found

    def now_s(self) -> float:
        return self._on_time.at(time.monotonic())

    def _go_on(self) -> None:
        asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        self._on_time.beat(time.monotonic())
        self._go_on()


_CLOCKS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, LoopClock]] = WeakKeyDictionary()


class Turns:
    """The time for which this thread waits for its turn, beside that for which it runs: on a busy machine much longer.

    Others on this machine wait as long for theirs. Where the system does not tell, every machine is idle.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic, file: Path = _SCHEDULED) -> None:
        self._now_s = now_s
        self._file = file
        self._slowness = 1.0
        self._before = now_s(), *self._scheduled_s()

    def slowness(self) -> float:
        """Return how many times as long as on an idle machine work takes; it falls slowly."""
        now_s = self._now_s()
        since_s, ran_s, waited_s = self._before
        if now_s - since_s >= WINDOW_S:
            self._before = now_s, *self._scheduled_s()
            spare_s = IDLE_SHARE * (now_s - since_s)
            runs_s, waits_s = self._before[1] - ran_s + spare_s, self._before[2] - waited_s
            self._slowness = max(1.0 + waits_s / runs_s, (self._slowness + 1.0) / 2)
        return self._slowness

    def _scheduled_s(self) -> tuple[float, float]:
        """Return the seconds for which this thread ran and waited so far."""
        try:
            ran, waited, _ = self._file.read_text().split()
        except (OSError, ValueError):
            return 0.0, 0.0
        return int(ran) / 1e9, int(waited) / 1e9


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
