"""Numbered computations on all cores: blocks of consecutive numbers are dealt to forked processes.

Guarantee: answers come in the order of their numbers, and do not depend on the number of processes. The first error of
any of them is raised in the caller's process, and no process is left behind.

`Cores` computes rows of floats. Its processes inherit what the caller has in memory, and each tells its rows bit for
bit while it computes more. Work that is soon done stays with the caller.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from struct import Struct
from time import monotonic
from typing import Any, Final

import numpy as np

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.arrays import Floats, Row, Work
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed

Block = Callable[[int, int], Iterable[Any]]
"""Computes the answers of numbers: the first number, and how many. Answers are what strict JSON can hold."""

Told = Callable[[int], None]
Progress = Callable[[int, int], None]
ALONE_S: Final = 0.3  # that what is left of rows takes at least where others are asked to help
_LOOKS: Final = 6  # in so much less time it shows how long rows take
_LENGTH: Final = Struct("=Q")  # before the floats of a row
_READ_BYTES: Final = 1 << 20
_KINDS: Final = (UsageError, NotReady, Refused, VerificationFailed)


def untold(_done: int, _total: int) -> None:
    """Tell nobody how far it is."""


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
            answers[int(done.name)] = _answers_of(done, why)
            told(sum(map(len, answers.values())))
    return [answer for start in starts for answer in answers[start]]


def _work(block: Block, start: int, count: int) -> dict[str, Any]:
    return {"answers": list(block(start, count))}


def _answers_of(done: Done, why: Callable[[Done], str]) -> list[Any]:
    if done.answer is None:
        kind: type[P2pdpError] = next((one for one in _KINDS if one.exit_code == done.exit_code), RunFailed)
        raise kind(why(done))
    return list(done.answer["answers"])


def _why_row(done: Done) -> str:
    if done.exit_code is not None:
        return str(done.problem)
    return f"a process that shared the work {done.problem}"


class Cores:
    """An `Each` on several cores; `told` is given how many rows are there, and how many there will be.

    With `ahead` this process does meanwhile what it is told to: then one fewer computes rows.
    """

    def __init__(self, workers: int | None, told: Progress = untold, *, ahead: bool = False) -> None:
        self.processes = worker_count(workers)
        self._told, self._ahead = told, ahead

    def __call__(self, count: int, row: Row, meanwhile: Work | None = None) -> list[Floats]:
        began_s, rows = monotonic(), list[Floats]()
        while len(rows) < count and not self._pays(monotonic() - began_s, len(rows), count):
            rows.append(row(len(rows)))
            self._told(len(rows), count)

        if len(rows) < count:
            rows += self._shared(len(rows), count, row, meanwhile if self._ahead else None)
        return rows

    def _shared(self, begin: int, count: int, row: Row, meanwhile: Work | None) -> list[Floats]:
        """Return the rows from `begin` on; each process takes every so many, and keeps its caches."""
        late = meanwhile is not None  # to read rows, so that processes keep them until then
        processes = min(self.processes - late, count - begin)
        streams = [_Stream() for _ in range(processes)]

        def read(stream: _Stream) -> None:
            before = len(stream.rows)
            stream.read()
            if len(stream.rows) > before:
                self._told(begin + sum(len(one.rows) for one in streams), count)

        try:
            with Pool(processes) as pool:
                for place, stream in enumerate(streams):
                    numbers = range(begin + place, count, processes)
                    pool.begin(str(place), partial(stream.tell_all, row, numbers, kept=late))
                if meanwhile is not None:
                    meanwhile()
                while pool.running:
                    _answers_of(pool.next_done({one.reading: partial(read, one) for one in streams}), _why_row)
                for place, stream in enumerate(streams):
                    while len(stream.rows) < len(range(begin + place, count, processes)):
                        read(stream)
        finally:
            for stream in streams:
                stream.close()
        return [streams[at % processes].rows[at // processes] for at in range(count - begin)]

    def _pays(self, taken_s: float, done: int, count: int) -> bool:
        """Return whether others should do the rest."""
        if self.processes == 1 or count - done < 2:
            return False
        return taken_s * _LOOKS >= ALONE_S and taken_s * (count - done) >= ALONE_S * done


class _Stream:
    """A pipe on which a process tells rows, and what was read from it."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self.rows: list[Floats] = []
        self._told = bytearray()

    def tell_all(self, row: Row, numbers: Iterable[int], *, kept: bool) -> dict[str, Any]:
        """Compute these rows and tell them, each at once or all in the end."""
        gc.disable()  # it would touch, and so copy, all that the processes share
        untold = bytearray()
        for number in numbers:
            data = np.asarray(row(number), dtype=np.float64).tobytes()
            untold += _LENGTH.pack(len(data)) + data
            if not kept:
                untold = self._tell(untold)
        self._tell(untold)
        return {"answers": []}

    def _tell(self, data: bytearray) -> bytearray:
        """Write all of the data, and return what is left."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._writing, left) :]
        return bytearray()

    def read(self) -> None:
        """Read what is there, at least a byte."""
        self._told += os.read(self.reading, _READ_BYTES)
        while len(self._told) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._told)[0]
            if len(self._told) < end:
                return
            self.rows.append(np.frombuffer(bytes(self._told[_LENGTH.size : end]), dtype=np.float64))
            del self._told[:end]

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)
