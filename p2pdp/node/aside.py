"""Long work of a machine beside the event loop: a step of descent may take seconds.

A call of a host that comes to such work runs on a thread of its own, in turn with the loop: the loop stands still while
the call does anything else, and the call stands still where it asks for the work, which is done while the loop goes on.
So whoever calls the host sees it at one place only, in the midst of that call, and nothing but the work itself is ever
done at the same time as anything else.

Guarantee: each call returns what it would have returned, or raises what it would have raised, once. Work is given aside
if the last one took long; otherwise the call does it at once. Of all users in a process one works at a time, since an
objective need not be safe for threads.

The caller owes: from a `call` or `go_on` that returned None to the `go_on` after `ready` it calls nothing of the host
that may come to such work. Work depends on its arguments alone, and changes nothing that anybody else reads.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

LONG_S: Final = 0.05
_ONE_AT_A_TIME: Final = threading.Lock()

Found = TypeVar("Found")


class _Left(BaseException):
    """Nobody waits for the call any more."""


class Aside(Generic[Found]):
    """Make it within a running event loop, which calls `ready` when work is done."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready = ready
        self._loop = asyncio.get_running_loop()
        self._to_loop, self._to_call = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._took_s = LONG_S  # the last work; the first may well be long
        self._found: Found | None = None
        self._error: BaseException | None = None
        self._left = False
        self.working = False

    def does(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return what does this work in its place, aside where it is long."""

        def done(*arguments: Any) -> Any:
            if threading.current_thread() is not self._thread:
                return self._timed(work, arguments)
            self._to_loop.release()
            try:
                return self._timed(work, arguments)
            finally:
                with suppress(RuntimeError):  # a loop that is closed calls nobody, and `leave` was called before
                    self._loop.call_soon_threadsafe(self._ready)
                self._to_call.acquire()
                if self._left:
                    raise _Left

        return done

    @property
    def does_at_once(self) -> bool:
        """Return whether a call would be made here, and not on a thread."""
        return self._took_s < LONG_S and not (self.working or _ONE_AT_A_TIME.locked())

    def call(self, act: Callable[[], Found]) -> Found | None:
        """Make a call; return what it returns, or None if it works now."""
        if self.does_at_once:
            return act()
        self._thread = threading.Thread(target=self._run, args=(act,), name="aside", daemon=True)
        self._thread.start()
        return self._handed_over()

    def go_on(self) -> Found | None:
        """Go on with the call whose work is done; return as `call` does."""
        self._to_call.release()
        return self._handed_over()

    def leave(self) -> None:
        """Give up a call that works; what it does from here on does not matter."""
        self._left = True
        self._to_call.release()

    def _run(self, act: Callable[[], Found]) -> None:
        try:
            self._found = act()
        except BaseException as error:  # noqa: BLE001  (the loop raises it)
            self._error = error
        self._thread = None
        self._to_loop.release()

    def _handed_over(self) -> Found | None:
        """Wait until it is the loop's turn."""
        self._to_loop.acquire()
        self.working = self._thread is not None
        found, self._found = self._found, None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return found

    def _timed(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with _ONE_AT_A_TIME:
            begun_s = time.perf_counter()
            try:
                return work(*arguments)
            finally:
                self._took_s = time.perf_counter() - begun_s
