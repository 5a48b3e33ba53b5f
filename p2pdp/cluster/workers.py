"""Calls in other processes: executors as `concurrent.futures` knows them, for fresh interpreters or a Dask cluster.

    python -m p2pdp.cluster.workers

is one such interpreter. It reads calls as JSON, one a line: the name of a function of an installed package, and its
argument. It writes answers in the same way. No code travels, and nothing is unpickled. Its linear algebra keeps to one
thread, and it ends with its parent, however that ends. If it is killed, only the call under way fails.

The caller owes: functions take and return one value that JSON can hold, and raise nothing.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NoReturn

from p2pdp.core.errors import NotReady
from p2pdp.node.helper import ONE_THREAD

AHEAD: Final = 256  # calls that wait in an executor; more of them would only take memory
CALLS_MAX: Final = 1000  # after which an interpreter is replaced, with whatever it has gathered
_DASK_S: Final = 10
_DASK_TRIES: Final = 3  # for a call whose worker died

AnyExecutor = Executor
Call = Callable[[dict[str, Any]], dict[str, Any]]


class Workers(Executor):
    """Fresh interpreters of this machine, `count` at most; each is started when a call needs it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._calls: SimpleQueue[tuple[Future[Any], bytes] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = Lock()
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        (argument,) = args
        if self._closed:
            raise RuntimeError("no call can be submitted after shutdown")
        future: Future[Any] = Future()
        line = json.dumps([fn.__module__, fn.__qualname__, argument], allow_nan=False).encode() + b"\n"
        self._calls.put((future, line))
        if len(self._threads) < self._count:
            self._threads.append(Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop as `concurrent.futures.Executor` says; with `cancel_futures` also calls under way."""
        with self._lock:
            self._closed = True
            children = list(self._children) if cancel_futures else []
        with suppress(Empty):
            while cancel_futures:
                waiting = self._calls.get_nowait()
                if waiting is not None:
                    waiting[0].cancel()
        for child in children:
            child.kill()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _work(self) -> None:
        """Pass calls to one interpreter after the other, until there are no more."""
        child, served = None, 0
        try:
            while (taken := self._calls.get()) is not None:
                future, line = taken
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    if child is None:
                        child, served = self._begin(), 0
                    answer, served = _ask(child, line), served + 1
                except NotReady as error:
                    self._end(child)
                    child = None
                    future.set_exception(error)
                    continue
                future.set_result(answer)
                if served == CALLS_MAX:
                    self._end(child)
                    child = None
        finally:
            self._end(child)

    def _begin(self) -> subprocess.Popen[bytes]:
        home = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        with self._lock:
            if self._closed:
                raise NotReady("the workers were stopped")
            try:
                child = subprocess.Popen(
                    [sys.executable, "-m", "p2pdp.cluster.workers"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **ONE_THREAD, "PYTHONPATH": paths},
                    start_new_session=True,  # Ctrl-C is for the parent, which ends its workers
                )
            except OSError as error:
                raise NotReady(f"no further process can be started: {error.strerror}") from None
            self._children.add(child)
        return child

    def _end(self, child: subprocess.Popen[bytes] | None) -> None:
        if child is None:
            return
        with self._lock:
            self._children.discard(child)
        child.kill()  # it holds nothing that is not told
        with child:
            pass


def _ask(child: subprocess.Popen[bytes], line: bytes) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError):
        child.stdin.write(line)
        child.stdin.flush()
    answer = child.stdout.readline()
    if answer.endswith(b"\n"):
        return json.loads(answer)
    code = child.wait()
    raise NotReady(f"its process {f'was ended by signal {-code}' if code < 0 else f'ended with code {code}'}")


@contextmanager
def dask(address: str) -> Iterator[Executor]:
    """Provide the executor of the Dask cluster whose scheduler is at this HOST:PORT."""
    try:
        from distributed import Client
    except ImportError:
        raise NotReady(f"dask://{address}: Dask is not installed here; pip install '.[dask]' installs it") from None
    with _silent("distributed", "distributed.client"):  # the reason that a call failed is told with the call
        try:
            client = Client(f"tcp://{address}", timeout=_DASK_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NotReady(f"dask://{address}: no Dask scheduler answers there ({type(error).__name__})") from None
        try:
            yield client.get_executor(pure=False, retries=_DASK_TRIES)
        finally:
            client.close()


@contextmanager
def _silent(*names: str) -> Iterator[None]:
    """Keep these loggers from writing to the error stream meanwhile."""
    before = [(logger, logger.level) for logger in map(logging.getLogger, names)]
    for logger, _ in before:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Provide workers, and end them with all that they do when the caller is done."""
    workers = Workers(count)
    try:
        yield workers
    finally:
        workers.shutdown(cancel_futures=True)


def answers(
    executor: Executor, call: Call, arguments: Iterable[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, dict[str, Any] | None, str]]:
    """Yield the name of each argument with its answer, as they come, or with None and the reason for its lack."""
    left, under_way = iter(arguments), dict[Future[Any], str]()
    while True:
        while len(under_way) < AHEAD and (asked := next(left, None)) is not None:
            name, argument = asked
            try:
                under_way[executor.submit(call, argument)] = name
            except RuntimeError as error:  # the executor is broken or was stopped
                yield name, None, _reason(error)
        if not under_way:
            return
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            name = under_way.pop(future)
            try:
                yield name, future.result(), ""
            except (Exception, CancelledError) as error:  # noqa: BLE001  (calls raise nothing: it is the executor's)
                yield name, None, _reason(error)


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, NotReady) else f"{type(error).__name__}: {error}".rstrip(": ")


def _serve() -> NoReturn:
    """Answer calls until the parent closes the pipe or is gone; what libraries print goes nowhere."""
    told = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    calls: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(calls,), daemon=True).start()
    while True:
        module, name, argument = json.loads(calls.get())
        answer = getattr(import_module(module), name)(argument)
        told.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
        told.flush()


def _listen(calls: SimpleQueue[bytes]) -> None:
    with os.fdopen(0, "rb") as given:
        for line in given:
            calls.put(line)
    os._exit(0)


if __name__ == "__main__":
    _serve()
