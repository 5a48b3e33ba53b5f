"""Plain computations in forked processes, a few at a time; the answer of each comes back as JSON.

Guarantee: an answer is given once, in the order in which works end. A work that raises ends its own process alone;
its sentence comes back in place of an answer. When the pool is left, for whatever reason, no child is left behind.
The child inherits the parent's memory as it was when the work started, and nothing of what it changes comes back.

The caller owes: works do not start processes that outlive them, and their answers are what strict JSON can hold.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, sleep
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn, Self

from p2pdp.cluster.processes import INTERRUPTED, signals_held, trace_of
from p2pdp.core.errors import NotReady, P2pdpError

TIDY_S: Final = 3.0  # that a work has to leave when it is asked to
LOOK_S: Final = 0.01
_READ_BYTES: Final = 1 << 16
_NOTHING: Final[Mapping[int, Callable[[], None]]] = {}


@dataclass(frozen=True, slots=True)
class Done:
    """The end of one computation: an answer, or a sentence on why there is none.

    `exit_code` is that of the error, where it is one that p2pdp raises on purpose.
    """

    name: str
    answer: dict[str, Any] | None
    problem: str | None
    exit_code: int | None = None


@dataclass(slots=True)
class _Child:
    name: str
    process: int
    told: bytearray = field(default_factory=bytearray)


class Pool:
    """A pool: `begin` while `free`, then `next_done`, until nothing is `running`."""

    is_inside: ClassVar[bool] = False  # whether this process is the child of a pool

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._children: dict[int, _Child] = {}

    @property
    def free(self) -> bool:
        return len(self._children) < self._processes

    @property
    def running(self) -> int:
        return len(self._children)

    def begin(self, name: str, work: Callable[[], dict[str, Any]]) -> None:
        reading, writing = os.pipe()
        with signals_held():
            try:
                process = os.fork()
            except OSError as error:
                os.close(reading)
                os.close(writing)
                raise NotReady(f"no further process can be started: {error.strerror}") from None
            if process == 0:
                _live(work, writing)
            os.close(writing)
            self._children[reading] = _Child(name, process)

    def next_done(self, beside: Mapping[int, Callable[[], None]] = _NOTHING) -> Done:
        """Wait until one of the computations has ended; meanwhile do what belongs to pipes `beside` when they fill."""
        while True:
            ready, _, _ = select.select([*self._children, *beside], [], [])
            for reading in ready:
                if reading in beside:
                    beside[reading]()
                    continue
                data = os.read(reading, _READ_BYTES)
                self._children[reading].told += data
                if not data:
                    return self._ended(reading)

    def _ended(self, reading: int) -> Done:
        child = self._children.pop(reading)
        os.close(reading)
        _, status = os.waitpid(child.process, 0)
        try:
            told = json.loads(child.told)
        except ValueError:
            code = os.waitstatus_to_exitcode(status)
            why = f"was ended by signal {-code}" if code < 0 else f"ended with code {code} and no answer"
            return Done(child.name, None, why)
        return Done(child.name, told.get("answer"), told.get("problem"), told.get("exit_code"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children.values():
            os.kill(child.process, signal.SIGTERM)
        until_s = monotonic() + TIDY_S
        for reading, child in self._children.items():
            while not os.waitpid(child.process, os.WNOHANG)[0]:
                if monotonic() > until_s:
                    os.kill(child.process, signal.SIGKILL)
                    os.waitpid(child.process, 0)
                    break
                sleep(LOOK_S)
            os.close(reading)
        self._children.clear()


def _live(work: Callable[[], dict[str, Any]], writing: int) -> None:
    """Run a child from start to end; it never runs on into the parent's code."""
    code, Pool.is_inside = 1, True
    try:
        signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1})
        told = json.dumps(_answer_of(work), allow_nan=False).encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(told)
        code = 0
    except SystemExit:
        code = INTERRUPTED
    finally:
        os._exit(code)


def _leave(_number: int, _frame: object) -> NoReturn:
    """End by an exception, so that a computation removes its temporary files."""
    raise SystemExit(INTERRUPTED)


def _answer_of(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        answer = work()
        json.dumps(answer, allow_nan=False)
    except P2pdpError as error:
        return {"problem": str(error), "exit_code": error.exit_code}
    except MemoryError:
        return {"problem": "there is not enough memory for this", "exit_code": NotReady.exit_code}
    except Exception as error:  # noqa: BLE001  (a child must never run on into the parent's code)
        return {"problem": f"{error}\n{trace_of(error)}"}
    return {"answer": answer}
