"""One peer in this process, in the foreground: runs until it is done, or until somebody ends it.

SIGINT and SIGTERM end it in good order, so that its folder can be gone on with: then `SystemExit(130)`. An
error that nobody foresaw becomes `RunFailed` with its kind and place, and without its message, which may hold
a value; the event loop's callbacks included, since the state they left behind is not to be trusted.
"""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import uvloop

from p2pdp.core.errors import P2pdpError, RunFailed

INTERRUPTED: Final = 130

Outcome = TypeVar("Outcome")


def run_in_foreground(body: Callable[[], Awaitable[Outcome]]) -> Outcome:
    unheard: list[BaseException] = []

    async def until_told() -> Outcome:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is not None and not isinstance(error, OSError):  # the network's end a connection, not a node
                unheard.append(error)
                task.cancel()

        loop.set_exception_handler(failed)
        _heed(loop, before, task, early)
        return await body()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    early: list[int] = []  # a loop that is told to end while it is being made would lose its head
    _note(before, early)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(until_told())
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
    """Does nothing until somebody ends this process; then that is as it should be."""

    async def forever() -> None:
        await asyncio.Event().wait()

    with suppress(SystemExit):
        run_in_foreground(forever)


def _note(numbers: Iterable[int], early: list[int]) -> None:
    for number in numbers:
        signal.signal(number, lambda told, _frame: early.append(told))


def _heed(loop: asyncio.AbstractEventLoop, numbers: Iterable[int], task: asyncio.Task[Any], early: list[int]) -> None:
    """From now on a signal cancels the task; so does one that came before."""
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
