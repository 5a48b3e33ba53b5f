"""Child processes, forked from this one or spawned (`spawned.py`), each with an event loop, and events they send.

Guarantee: nothing random is made before a fork, so a child makes its own keys, salts and noise. A child leaves by
`os._exit` and never runs on into the parent's code. SIGTERM asks it to end in good order, and so does the end of the
parent, however that comes about (`lifeline`). Children write to no standard stream: they `report` why they failed. For
an unexpected error that is its kind and place, but not its message, which may hold a value.

Events are JSON documents, one a line, through a pipe that all processes share. They concern the run's life cycle only:
the roster, publication, exclusions, failures. A line is written at once and is shorter than what the system writes in
one piece, so lines of several processes do not mix.

The caller owes: it waits for each child, and does not fork from a thread of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, P2pdpError
from p2pdp.node.hardening import harden
from p2pdp.node.loops import new_event_loop

INTERRUPTED: Final = 130
CRASHED: Final = 1
PEEKS: Final = hasattr(os, "waitid")  # whether a child's end can be seen without taking it; on macOS from Python 3.13
TRACE_LETTERS_MAX: Final = 1500
_ARENA_MAX: Final = -8  # glibc's M_ARENA_MAX
_HELD: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1})

Main = Callable[[], Awaitable[None]]
Report = Callable[[str, str], None]  # FAILED or TRACE, and a text

FAILED: Final = "failed"  # for a reason that a person can understand
TRACE: Final = "trace"  # by an error that nobody foresaw


def fork(main: Main, close: Callable[[], None], report: Report, lifeline: int | None = None) -> int:
    """Start a child that runs `main`; return its process id.

    `close` drops what the child inherited and must not keep, such as the sockets of the others. `lifeline`
    is the reading end of a pipe whose writing end only the parent keeps.
    """
    with signals_held():
        try:
            child = os.fork()
        except OSError as error:
            raise NotReady(f"no further process can be started: {error.strerror}") from None
        if child:
            return child
        code = CRASHED
        try:
            code = live(main, close, report, lifeline)
        finally:
            os._exit(code)


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals until a child has its own handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def live(main: Main, close: Callable[[], None], report: Report, lifeline: int | None) -> int:
    """Run a child from start to end; return its exit code."""
    try:
        harden()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGUSR1):  # Ctrl-C is for the parent, which tells its children
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        close()
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.get_loop().set_exception_handler(lambda _loop, context: _unheard(context, report))
            runner.run(_until_told(main, lifeline))
    except asyncio.CancelledError:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001  (a child must never run on into the parent's code)
        return _told(error, report)
    return 0


def give_memory_back() -> None:
    """Return freed memory to the system: glibc would keep what a node needed for its enrolment only."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_one_heap() -> None:
    """Have all threads take memory from one heap; glibc would keep what was freed for each of them.

    This stays so, hence it is for a process that is the command's own.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if limit is not None:
        limit(_ARENA_MAX, 1)


def _told(error: BaseException, report: Report) -> int:
    """Report why a child ends; return its exit code."""
    if isinstance(error, P2pdpError):
        report(FAILED, str(error))
        return error.exit_code
    report(TRACE, trace_of(error))
    return CRASHED


def trace_of(error: BaseException) -> str:
    """Return where an error happened and its kind."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    return "\n".join([*lines, type(error).__name__])[-TRACE_LETTERS_MAX:]


def _unheard(context: dict[str, Any], report: Report) -> None:
    """End the process for an error in a callback, which the loop would only log: its state is not to be trusted."""
    error = context.get("exception")
    if error is not None and not isinstance(error, OSError):  # the network's errors end a connection, not a node
        os._exit(_told(error, report))


async def _until_told(main: Main, lifeline: int | None) -> None:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    if lifeline is not None:

        def orphaned() -> None:
            loop.remove_reader(lifeline)
            task.cancel()

        loop.add_reader(lifeline, orphaned)
    await main()


def wait_for(child: int) -> int:
    """Return the exit code of a child, negative for a signal. An interruption meanwhile ends the child too."""
    try:
        if PEEKS:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        _, status = os.waitpid(child, 0)
    except BaseException:
        with suppress(ProcessLookupError, ChildProcessError):  # it ended just now
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)


READ_BYTES_MAX = 1 << 16


def send_event(pipe: int, name: str, **more: Any) -> None:
    os.write(pipe, json.dumps({"event": name, **more}, ensure_ascii=False).encode() + b"\n")


class Events:
    """The launcher's end of the pipe."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """Return all events since the last call."""
        data = self._rest
        while True:
            try:
                piece = os.read(self.reading, READ_BYTES_MAX)
            except BlockingIOError:
                break
            data += piece
            if not piece:
                break
        *lines, self._rest = data.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)
