"""Numbered computations on all cores: blocks of consecutive numbers are dealt to forked processes.

Guarantee: answers come in the order of their numbers, and do not depend on the number of processes. The first error of
any of them is raised in the caller's process, and no process is left behind.

`Cores` computes rows of floats. Its processes inherit what the caller has in memory, and tell their rows bit for bit.
Work that is soon done stays with the caller.
"""

from __future__ import annotations

import gc
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import Any, Final

import numpy as np

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.arrays import Floats, Row
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed

Block = Callable[[int, int], Iterable[Any]]
"""Computes the answers of numbers: the first number, and how many. Answers are what strict JSON can hold."""

Told = Callable[[int], None]
Progress = Callable[[int, int], None]
ALONE_S: Final = 0.3  # that rows take before others are asked to help, if the rest takes as long again
_BLOCKS_EACH: Final = 2  # of rows for a process: some are quicker, but each begins without what others kept
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
    """An `Each` on several cores; `told` is given how many rows are there, and how many there will be."""

    def __init__(self, workers: int | None, told: Progress = untold) -> None:
        self.processes = worker_count(workers)
        self._told = told

    def __call__(self, count: int, row: Row) -> list[Floats]:
        began_s, rows = monotonic(), list[Floats]()
        while len(rows) < count and not self._pays(monotonic() - began_s, len(rows), count):
            rows.append(row(len(rows)))
            self._told(len(rows), count)

        def block(start: int, size: int) -> Iterator[str]:
            gc.disable()  # it would touch, and so copy, all that the processes share
            for number in range(start, start + size):
                yield b64encode(np.asarray(row(number), dtype=np.float64).tobytes()).decode()

        begin, left = len(rows), count - len(rows)
        size = max(1, -(-left // (self.processes * _BLOCKS_EACH)))
        told = in_blocks(
            begin, left, block, self.processes, size, lambda more: self._told(begin + more, count), _why_row
        )
        return rows + [np.frombuffer(b64decode(one), dtype=np.float64) for one in told]

    def _pays(self, taken_s: float, done: int, count: int) -> bool:
        """Return whether others should do the rest."""
        if self.processes == 1 or count - done < 2:
            return False
        return taken_s >= ALONE_S and taken_s * (count - done) >= ALONE_S * done
