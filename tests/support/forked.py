"""Commands in processes that are forked from one that has imported p2pdp: a start costs a tenth of that of a program.

Each is a process as any other, to be waited for, sent signals and killed; its interpreter ends as interpreters do. What
only a fresh interpreter shows is tested where programs are started: tests/cli, tests/cluster/test_launcher.py,
tests/cluster/test_spawned.py, tests/laws/test_light.py, tests/deploy.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tests.support.nursery import END, LENGTH
from tests.support.sources import TOP

COMMAND: Final = "p2pdp.cli.main:main"
NETWORK: Final = Path("/proc/thread-self/ns/net")


class Forked:
    """A process that runs `main` with its arguments; it has the methods of `subprocess.Popen` that tests need."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        main: str = COMMAND,
        arguments: Sequence[object] = (),
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        session: bool = False,
        mortal: bool = False,
    ) -> None:
        """`stdout` and `stderr` are open files, `subprocess.PIPE`, or nothing; `mortal`: it ends with its starter.

        It is in the network in which this thread is.
        """
        self.returncode: int | None = None
        self._pipes: list[int] = []
        self._said: dict[int, bytes] = {}
        self._end, telling = os.pipe2(os.O_CLOEXEC)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        ours = [telling, nothing]
        out, err = self._stream(stdout, nothing, ours), self._stream(stderr, nothing, ours)
        request = {
            "main": main,
            "arguments": list(arguments),
            "argv": [str(TOP / "p2pdp" / "__main__.py"), *argv],
            "cwd": str(cwd),
            "environment": dict(os.environ if environment is None else environment),
            "session": session,
            "mortal": mortal,
        }
        nursery, network = _nursery()
        given = [nothing, out, err, telling]
        if _network() != network:
            ours.append(os.open(NETWORK, os.O_RDONLY | os.O_CLOEXEC))
            given.append(ours[-1])
        body = json.dumps(request).encode()
        socket.send_fds(nursery, [LENGTH.pack(len(body))], given)
        nursery.sendall(body)
        self.pid: int = LENGTH.unpack(nursery.recv(LENGTH.size))[0]
        for descriptor in ours:
            os.close(descriptor)

    def _stream(self, given: IO[bytes] | int | None, nothing: int, ours: list[int]) -> int:
        if given is None:
            return nothing
        if isinstance(given, int):
            reading, writing = os.pipe2(os.O_CLOEXEC)
            self._pipes.append(reading)
            ours.append(writing)
            return writing
        return given.fileno()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], 0)[0]:
            self._ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked command", timeout or 0.0)
            self._ended()
        assert self.returncode is not None
        return self.returncode

    def _ended(self) -> None:
        told = os.read(self._end, END.size)
        os.close(self._end)
        self.returncode = END.unpack(told)[0] if told else -signal.SIGKILL  # the nursery itself was killed

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what it wrote to its pipes, once all that hold them have ended."""
        with selectors.DefaultSelector() as selector:
            for pipe in self._pipes[len(self._said) :]:
                selector.register(pipe, selectors.EVENT_READ)
                self._said[pipe] = b""
            while selector.get_map():
                ready = selector.select(timeout)
                if not ready:
                    raise subprocess.TimeoutExpired("a forked command", timeout or 0.0)
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    self._said[key.fd] += piece
                    if not piece:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        self.wait(timeout)
        out, err = (self._said.get(pipe, b"").decode() for pipe in (*self._pipes, -1, -1)[:2])
        return out, err

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def wished(wishes: Mapping[str, object]) -> dict[str, Any]:
    """Return what starts the command line with these wishes, which are those of `tests/support/launch.py`."""
    return {"main": "tests.support.launch:command", "arguments": [json.dumps(wishes)]} if wishes else {}


def run(*arguments: object, cwd: Path = TOP, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does with its output captured."""
    words = [str(argument) for argument in arguments]
    process = Forked(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(words, process.wait(), out, err)


def _network() -> int:
    """Return what tells networks of Linux apart."""
    return NETWORK.stat().st_ino if NETWORK.exists() else 0


@cache
def _nursery() -> tuple[socket.socket, int]:
    """Return the way to the nursery, and the network that it is in."""
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, "-m", "tests.support.nursery", str(its.fileno())]
        process = subprocess.Popen(command, cwd=TOP, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours, _network()
