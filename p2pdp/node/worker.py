"""Work that nobody waits for, in a thread of its own, not more often than it makes sense.

Guarantee: `nudge` returns at once. The work is done at least once after the last nudge, unless that takes longer than
whoever leaves is willing to wait; between two times there are at least `least_s` seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOP_S: Final = 20.0


class Worker:
    def __init__(self, work: Callable[[], None], least_s: float) -> None:
        self._work = work
        self._least_s = least_s
        self._nudged = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def nudge(self) -> None:
        self._nudged.set()

    def _run(self) -> None:
        ended = False
        while not ended:
            self._nudged.wait()
            self._nudged.clear()
            ended = self._ending.is_set()  # read after that, or the nudge of `stop` could be cleared unheeded
            self._work()
            self._ending.wait(self._least_s)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Once more, and then no more."""
        self._ending.set()
        self._nudged.set()
        self._thread.join(STOP_S)


@contextmanager
def working(work: Callable[[], None], least_s: float) -> Iterator[Callable[[], None]]:
    """Gives what is to be called when there is something to do."""
    worker = Worker(work, least_s)
    worker.start()
    try:
        yield worker.nudge
    finally:
        worker.stop()
