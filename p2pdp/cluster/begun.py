"""Rows that other processes compute while this one does something else, and how processes tell rows.

Each process has every so many of the rows, from the first on. Whoever takes them computes what is left too, from the
last on: both ends of the work say in shared memory how far they are. A row may be computed by both, to the same bits.

Guarantee: no process is left behind by `close`. The first error of any row is raised where rows are taken.
"""

from __future__ import annotations

import gc
import os
import select
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from mmap import mmap
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.arrays import Floats, Ints, Row
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed

Progress = Callable[[int, int], None]
_LENGTH: Final = Struct("=Q")  # before the floats of a row
_READ_BYTES: Final = 1 << 20
_KINDS: Final = (UsageError, NotReady, Refused, VerificationFailed)
_DONE, _LIMIT = range(2)  # of the rows of one process: how many it has computed, and how many are left to it


def untold(_done: int, _total: int) -> None:
    """Tell nobody how far it is."""


def answers_of(done: Done, why: Callable[[Done], str]) -> list[Any]:
    if done.answer is None:
        kind: type[P2pdpError] = next((one for one in _KINDS if one.exit_code == done.exit_code), RunFailed)
        raise kind(why(done))
    return list(done.answer["answers"])


def why_row(done: Done) -> str:
    if done.exit_code is not None:
        return str(done.problem)
    return f"a process that shared the work {done.problem}"


class Begun:
    """Rows from `begin` to `count`, of which this many processes compute what they can until they are taken."""

    def __init__(self, begin: int, count: int, row: Row, processes: int, told: Progress = untold) -> None:
        self._begin, self._count, self._row, self._told = begin, count, row, told
        self.processes = max(1, min(processes, count - begin))
        self._numbers = [range(begin + place, count, self.processes) for place in range(self.processes)]
        self._memory = mmap(-1, self.processes * 2 * 8)
        self._state: Ints = np.frombuffer(self._memory, dtype=np.int64).reshape(-1, 2)
        self._state[:, _LIMIT] = [len(numbers) for numbers in self._numbers]
        self._streams = [Stream() for _ in self._numbers]
        self._pool = Pool(self.processes)
        try:
            for place, (stream, numbers) in enumerate(zip(self._streams, self._numbers, strict=True)):
                work = partial(stream.tell_some, row, numbers, self._state[place])
                self._pool.begin(str(place), partial(telling, self._streams, work))
        except BaseException:
            self.close()
            raise

    def take(self) -> list[Floats]:
        """Return the rows, and close."""
        found: dict[int, Floats] = {}
        with self:
            while (place := self._with_most_left()) is not None:
                self._state[place, _LIMIT] -= 1
                number = self._numbers[place][int(self._state[place, _LIMIT])]
                found[number] = self._row(number)
                while ready := select.select([one.reading for one in self._streams], [], [], 0.0)[0]:
                    for stream in self._streams:
                        if stream.reading in ready:
                            self._read(stream, found)
            while self._pool.running:
                reads = {one.reading: partial(self._read, one, found) for one in self._streams}
                answers_of(self._pool.next_done(reads), why_row)
            for place, stream in enumerate(self._streams):
                while len(stream.rows) < self._state[place, _LIMIT]:
                    self._read(stream, found)
        for numbers, stream in zip(self._numbers, self._streams, strict=True):
            found |= zip(numbers, stream.rows, strict=False)
            stream.rows = []
        return [found[number] for number in range(self._begin, self._count)]

    def _with_most_left(self) -> int | None:
        """Return whose rows to help with, if there is more left to anybody than the row that it is at."""
        left = self._state[:, _LIMIT] - self._state[:, _DONE]
        place = int(left.argmax())
        return place if left[place] > 1 else None

    def _read(self, stream: Stream, found: dict[int, Floats]) -> None:
        stream.read()
        done = len(found) + sum(len(one.rows) for one in self._streams)
        self._told(min(self._begin + done, self._count), self._count)

    def close(self) -> None:
        """End the processes that compute rows; nothing is taken after that."""
        self._pool.__exit__(None, None, None)
        self.processes = 0
        for stream in self._streams:
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stream:
    """A pipe on which a process tells rows, and what was read from it."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self.rows: list[Floats] = []
        self._told = bytearray()
        self._closed = False

    def tell_all(self, row: Row, numbers: Iterable[int]) -> dict[str, Any]:
        """Compute these rows and tell them, each at once."""
        gc.disable()  # it would touch, and so copy, all that the processes share
        for number in numbers:
            self._tell(_packed(row(number)))
        return {"answers": []}

    def tell_some(self, row: Row, numbers: Iterable[int], state: Ints) -> dict[str, Any]:
        """Compute these rows until as many as are left to it are done; tell them when somebody reads."""
        gc.disable()
        os.set_blocking(self._writing, False)
        untold = bytearray()
        for number in numbers:
            if state[_DONE] >= state[_LIMIT]:
                break
            untold += _packed(row(number))
            state[_DONE] += 1
            self._tell(untold)
        os.set_blocking(self._writing, True)
        self._tell(untold)
        return {"answers": []}

    def _tell(self, data: bytearray) -> None:
        """Write the data, as far as that is possible at once, and take off what is written."""
        written = 0
        with suppress(BlockingIOError), memoryview(data) as left:
            while written < len(data):
                written += os.write(self._writing, left[written:])
        del data[:written]

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
        if not self._closed:
            self._closed = True
            os.close(self.reading)
            os.close(self._writing)


def telling(streams: Iterable[Stream], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Work in a process that only tells: where its parent is gone, nobody reads, and it ends."""
    for stream in streams:
        os.close(stream.reading)
    return work()


def _packed(row: Floats) -> bytearray:
    data = np.asarray(row, dtype=np.float64).tobytes()
    return bytearray(_LENGTH.pack(len(data)) + data)
