"""A process that computes something for a node, so that the node itself stays light: it gives back its memory at once.

    helper = Helper("p2pdp.runs.budgeting", "what the run costs")    # the module calls `serve` when it is run
    helper.ask({"do": ...})                                          # starts the process if there is none

Both sides talk in lines of JSON over pipes. Guarantee: an error of `core.errors` that an answer raises is raised by
`ask` with its kind and text; of any other error only its kind and place are known, since its message may hold a value.
The process ends with the node, however that ends, and when a signal tells the node to end while it waits for an answer.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from p2pdp.core import errors
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed

ANSWER_S: Final = 300.0
_READ_BYTES: Final = 1 << 16
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Interrupted(P2pdpError):
    """A signal told this process to end while it waited; its folder can be gone on with."""

    exit_code = 130


class Helper:
    """`purpose` completes "… could not be computed"."""

    def __init__(self, module: str, purpose: str, answer_s: float = ANSWER_S) -> None:
        self._module = module
        self._purpose = purpose
        self._answer_s = answer_s
        self._process: subprocess.Popen[bytes] | None = None
        self._left = threading.Event()
        self._told: int | None = None  # the signal that came while we waited

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def give_up(self) -> None:
        """End the process from another thread than the one that asks; that one gets `RunFailed`, also later."""
        self._left.set()
        if self._process is not None:
            self._process.kill()

    def ask(self, request: Mapping[str, Any]) -> Any:
        if self._left.is_set():
            raise RunFailed(f"{self._purpose} was not computed: nobody waits for it")
        if self._process is None:
            self._process = self._started()
            if self._left.is_set():
                self._process.kill()
        with self._taking_signals():
            line = self._exchange(self._process, json.dumps(request).encode() + b"\n")
        if self._told is not None:
            self.close()
            raise Interrupted("interrupted")
        answer = json.loads(line)
        if "error" in answer:
            raise getattr(errors, answer["error"])(answer["text"])
        return answer["value"]

    def _started(self) -> subprocess.Popen[bytes]:
        home = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        try:
            return subprocess.Popen(  # noqa: S603  (our own module, and no shell)
                [sys.executable, "-P", "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is for the node, which ends its helper
            )
        except OSError as error:
            raise NotReady(f"no further process can be started: {error.strerror}") from None

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes) -> bytes:
        """Return the line of the answer, or what came before a signal to this node ended the helper."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            process.stdin.write(line)
            process.stdin.flush()
        until_s = time.monotonic() + self._answer_s
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not parts.endswith(b"\n"):
                if not selector.select(max(0.0, until_s - time.monotonic())):
                    self.close()
                    raise Refused(f"{self._purpose} could not be computed within {self._answer_s:g} s")
                part = os.read(process.stdout.fileno(), _READ_BYTES)
                if not part:
                    break
                parts += part
        if not parts.endswith(b"\n") and self._told is None:
            code = process.wait()
            self.close()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise RunFailed(f"{self._purpose} could not be computed: the process that does it ended with {how}")
        return bytes(parts)

    @contextmanager
    def _taking_signals(self) -> Iterator[None]:
        """Let a signal to this node end the helper while we wait, since no event loop runs meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def told(number: int, _frame: object) -> None:
            self._told = number
            if self._process is not None:
                self._process.kill()

        before = {number: signal.signal(number, told) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


Ask = Callable[[Mapping[str, Any], Callable[[Any], None], Callable[[P2pdpError], None]], None]


@contextmanager
def asking_aside(module: str, purpose: str) -> Iterator[Ask]:
    """Yield what asks a helper in another thread, one question after the other, and hands on answer or error there.

    When the context is left, what is not answered is given up: its error is handed on.
    """
    helper = Helper(module, purpose)
    threads: list[threading.Thread] = []

    def ask(request: Mapping[str, Any], answered: Callable[[Any], None], failed: Callable[[P2pdpError], None]) -> None:
        before = threads[-1] if threads else None

        def work() -> None:
            if before is not None:
                before.join()
            try:
                found = helper.ask(request)
            except P2pdpError as error:
                failed(error)
            else:
                answered(found)

        threads.append(threading.Thread(target=work, name="aside", daemon=True))
        threads[-1].start()

    try:
        yield ask
    finally:
        helper.give_up()
        for thread in threads:
            thread.join()
        helper.close()


def serve(answer: Callable[[Mapping[str, Any]], Any]) -> None:
    """Answer line by line until the node is gone or closes the pipe, also in the midst of an answer."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        with open(0, "rb", closefd=False) as asked:
            for line in asked:
                lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    with open(1, "wb", closefd=False) as out:
        while True:
            out.write(_answered(answer, lines.get()))
            out.flush()


def _answered(answer: Callable[[Mapping[str, Any]], Any], line: bytes) -> bytes:
    try:
        said = {"value": answer(json.loads(line))}
    except P2pdpError as error:
        said = {"error": _kind(error), "text": str(error)}
    except Exception as error:  # noqa: BLE001  (its message may hold a value)
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
        said = {"error": "RunFailed", "text": f"a defect of this program ({type(error).__name__} in {place})"}
    return json.dumps(said).encode() + b"\n"


def _kind(error: P2pdpError) -> str:
    """Return the name of the class in `core.errors`; a subclass defined elsewhere counts as its parent."""
    names: list[str] = [one.__name__ for one in type(error).__mro__ if getattr(errors, one.__name__, None) is one]
    return names[0]
