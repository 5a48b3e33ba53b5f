"""The process of one peer in the foreground, and what runs beside it: a periodic callback, a worker thread.

SIGINT and SIGTERM end a peer in good order, so that its folder can be resumed: then `SystemExit(130)`. An unforeseen
error becomes `RunFailed` with its kind and place, and without its message, which may hold a value. This includes
callbacks of the event loop, since the state they left behind is not to be trusted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from p2pdp.core.errors import P2pdpError, RunFailed
from p2pdp.node.hardening import harden
from p2pdp.node.loops import new_event_loop

INTERRUPTED: Final = 130
PULSE_S: Final = 1.0
STOP_S: Final = 20.0
_STATM: Final = Path("/proc/self/statm")

Outcome = TypeVar("Outcome")


def run_in_foreground(body: Callable[[], Awaitable[Outcome]]) -> Outcome:
    harden()
    unheard: list[BaseException] = []

    async def until_done() -> Outcome:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is not None and not isinstance(error, OSError):  # the network's end a connection, not a node
                unheard.append(error)
                task.cancel()

        loop.set_exception_handler(failed)
        _handle_signals(loop, before, task, early)
        return await body()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    early: list[int] = []  # a loop that is told to end while it is being made would lose its head
    _collect_signals(before, early)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(until_done())
    except asyncio.CancelledError:
        if unheard:
            raise _crash(unheard[0]) from None
        raise SystemExit(INTERRUPTED) from None
    except P2pdpError:
        raise
    except Exception as error:  # noqa: BLE001  (its message may hold a value)
        raise _crash(error) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def until_ended() -> None:
    """Wait until a signal ends this process, and return then."""

    async def forever() -> None:
        await asyncio.Event().wait()

    with suppress(SystemExit):
        run_in_foreground(forever)


def _collect_signals(numbers: Iterable[int], early: list[int]) -> None:
    for number in numbers:
        signal.signal(number, lambda told, _frame: early.append(told))


def _handle_signals(
    loop: asyncio.AbstractEventLoop, numbers: Iterable[int], task: asyncio.Task[Any], early: list[int]
) -> None:
    """Let signals cancel the task from now on; one that came before does so at once."""
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    if early:
        task.cancel()


def _crash(error: BaseException) -> P2pdpError:
    if isinstance(error, P2pdpError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "nowhere"
    return RunFailed(
        f"a defect of this program ended it ({type(error).__name__} in {place}); its folder can be resumed"
    )


async def with_pulse(body: Awaitable[Outcome], beat: Callable[[], None], every_s: float = PULSE_S) -> Outcome:
    """Run the body, call `beat` every `every_s` meanwhile, and once more at its end, however it ends."""

    async def beats() -> None:
        while True:
            await asyncio.sleep(every_s)
            beat()

    heart = asyncio.create_task(beats(), name="pulse")
    try:
        return await body
    finally:
        heart.cancel()
        with suppress(asyncio.CancelledError):
            await heart
        beat()


class Worker:
    """Does work that nobody waits for, in a thread of its own.

    Guarantee: `nudge` returns at once. The work is done at least once after the last nudge, unless that takes longer
    than `STOP_S`; between two times there are at least `least_s` seconds.
    """

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
        """Work once more, and then no more."""
        self._ending.set()
        self._nudged.set()
        self._thread.join(STOP_S)


@contextmanager
def working(work: Callable[[], None], least_s: float) -> Iterator[Callable[[], None]]:
    """Run a worker; yield the function that tells it that there is something to do."""
    worker = Worker(work, least_s)
    worker.start()
    try:
        yield worker.nudge
    finally:
        worker.stop()


def resident_bytes() -> int | None:
    """Return how much memory this process has; None where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
