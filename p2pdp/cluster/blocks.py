"""Numbered computations on all cores: blocks of consecutive numbers are dealt to forked processes.

Guarantee: answers come in the order of their numbers, and do not depend on the number of processes. The first error of
any of them is raised in the caller's process, and no process is left behind.

`Cores` computes rows of floats. Its processes inherit what the caller has in memory, and each tells its rows bit for
bit while it computes more. Work that is soon done stays with the caller.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Any, Final

from p2pdp.cluster.begun import Begun, Progress, Stream, answers_of, telling, untold, why_row
from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.arrays import Floats, Row, Work
from p2pdp.core.errors import UsageError

Block = Callable[[int, int], Iterable[Any]]
"""Computes the answers of numbers: the first number, and how many. Answers are what strict JSON can hold."""

Told = Callable[[int], None]
ALONE_S: Final = 0.3  # that what is left of rows takes at least where others are asked to help
_LOOKS: Final = 6  # in so much less time it shows how long rows take


def worker_count(asked: int | None) -> int:
    """Return how many processes to use: `asked`, or one a core, or one where threads make forking unsafe.

    A process that is one of several has its core, and starts no more unless it is asked to.
    """
    if asked is not None:
        if type(asked) is not int or asked < 1:
            raise UsageError("--workers: must be a whole number, at least 1")
        return asked
    alone = hasattr(os, "fork") and threading.active_count() == 1 and not Pool.is_inside
    return (os.cpu_count() or 1) if alone else 1


def _why_number(done: Done) -> str:
    return f"number {done.name}: {done.problem}"


def in_blocks(
    first: int, count: int, block: Block, workers: int, size: int, told: Told, why: Callable[[Done], str] = _why_number
) -> list[Any]:
    """Return the answers of `count` numbers from `first` on; `told` is given how many of them are there."""
    waiting = starts = range(first, first + count, size)
    answers: dict[int, list[Any]] = {}
    with Pool(workers) as pool:
        while waiting or pool.running:
            while waiting and pool.free:
                pool.begin(str(waiting[0]), partial(_work, block, waiting[0], min(size, first + count - waiting[0])))
                waiting = waiting[1:]
            done = pool.next_done()
            answers[int(done.name)] = answers_of(done, why)
            told(sum(map(len, answers.values())))
    return [answer for start in starts for answer in answers[start]]


def _work(block: Block, start: int, count: int) -> dict[str, Any]:
    return {"answers": list(block(start, count))}


class Cores:
    """An `Each` on several cores; `told` is given how many rows are there, and how many there will be.

    With `ahead` this process does meanwhile what it is told to, while one fewer computes rows, and then helps.
    """

    def __init__(self, workers: int | None, told: Progress = untold, *, ahead: bool = False) -> None:
        self.processes = worker_count(workers)
        self._told, self._ahead = told, ahead
        self._begun: Begun | None = None

    def __call__(self, count: int, row: Row, meanwhile: Work | None = None) -> list[Floats]:
        began_s, rows = monotonic(), list[Floats]()
        while len(rows) < count and not self._pays(monotonic() - began_s, len(rows), count):
            rows.append(row(len(rows)))
            self._told(len(rows), count)
        if len(rows) < count:
            ahead = self._ahead and meanwhile is not None
            rows += self._with_help(len(rows), count, row, meanwhile) if ahead else self._dealt(len(rows), count, row)
        return rows

    def begin(self, count: int, row: Row) -> Begun | None:
        """Let others compute rows that are taken later; None where that does not pay. Whoever begins closes it."""
        if not self._ahead or self._free == 1 or count < 2:
            return None
        row(0)  # what it imports, and other processes then have
        began_s = monotonic()
        row(1)
        if (monotonic() - began_s) * count < ALONE_S:
            return None
        self._begun = Begun(0, count, row, self._free - 1, self._told)
        return self._begun

    def _with_help(self, begin: int, count: int, row: Row, meanwhile: Work | None) -> list[Floats]:
        begun = self._begun = Begun(begin, count, row, self._free - 1, self._told)
        with begun:
            if meanwhile is not None:
                meanwhile()
            return begun.take()

    def _dealt(self, begin: int, count: int, row: Row) -> list[Floats]:
        """Return the rows from `begin` on; each process takes every so many, and keeps its caches."""
        processes = min(self._free, count - begin)
        streams = [Stream() for _ in range(processes)]

        def read(stream: Stream) -> None:
            before = len(stream.rows)
            stream.read()
            if len(stream.rows) > before:
                self._told(begin + sum(len(one.rows) for one in streams), count)

        try:
            with Pool(processes) as pool:
                for place, stream in enumerate(streams):
                    work = partial(stream.tell_all, row, range(begin + place, count, processes))
                    pool.begin(str(place), partial(telling, streams, work))
                while pool.running:
                    answers_of(pool.next_done({one.reading: partial(read, one) for one in streams}), why_row)
                for place, stream in enumerate(streams):
                    while len(stream.rows) < len(range(begin + place, count, processes)):
                        read(stream)
        finally:
            for stream in streams:
                stream.close()
        return [streams[at % processes].rows[at // processes] for at in range(count - begin)]

    @property
    def _free(self) -> int:
        """Return how many processes there may be besides those that compute ahead."""
        return max(1, self.processes - (0 if self._begun is None else self._begun.processes))

    def _pays(self, taken_s: float, done: int, count: int) -> bool:
        """Return whether others should do the rest."""
        if self._free == 1 or count - done < 2:
            return False
        return taken_s * _LOOKS >= ALONE_S and taken_s * (count - done) >= ALONE_S * done
