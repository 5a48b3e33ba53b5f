"""Numbered computations on all cores: blocks of consecutive numbers are dealt to forked processes.

Guarantee: answers come in the order of their numbers, and do not depend on the number of processes. The first error of
any of them is raised in the caller's process, and no process is left behind.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.errors import NotReady, P2pdpError, RunFailed, UsageError

Block = Callable[[int, int], Iterable[Any]]
"""Computes the answers of numbers: the first number, and how many. Answers are what strict JSON can hold."""

Told = Callable[[int], None]
_KINDS: Final = (UsageError, NotReady)


def worker_count(asked: int | None) -> int:
    """Return how many processes to use: `asked`, or one a core, or one where threads make forking unsafe."""
    if asked is not None:
        if type(asked) is not int or asked < 1:
            raise UsageError("--workers: must be a whole number, at least 1")
        return asked
    alone = hasattr(os, "fork") and threading.active_count() == 1
    return (os.cpu_count() or 1) if alone else 1


def in_blocks(first: int, count: int, block: Block, workers: int, size: int, told: Told) -> list[Any]:
    """Return the answers of `count` numbers from `first` on; `told` is given how many of them are there."""
    waiting = starts = range(first, first + count, size)
    answers: dict[int, list[Any]] = {}
    with Pool(workers) as pool:
        while waiting or pool.running:
            while waiting and pool.free:
                pool.begin(str(waiting[0]), partial(_work, block, waiting[0], min(size, first + count - waiting[0])))
                waiting = waiting[1:]
            done = pool.next_done()
            answers[int(done.name)] = _answers_of(done)
            told(sum(map(len, answers.values())))
    return [answer for start in starts for answer in answers[start]]


def _work(block: Block, start: int, count: int) -> dict[str, Any]:
    return {"answers": list(block(start, count))}


def _answers_of(done: Done) -> list[Any]:
    if done.answer is None:
        kind: type[P2pdpError] = next((one for one in _KINDS if one.exit_code == done.exit_code), RunFailed)
        raise kind(f"number {done.name}: {done.problem}")
    return list(done.answer["answers"])
