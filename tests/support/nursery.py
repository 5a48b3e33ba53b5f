"""A process that has imported p2pdp and forks commands when asked: for `tests/support/forked.py`, which starts it.

    python -m tests.support.nursery SOCKET

A request is a JSON document, with the descriptors of the command's standard streams, of the pipe that is to tell its
end, and of a network namespace if it shall be in one. What is forked goes on as an interpreter of its own would: with
the folder, environment and handlers of signals that it would have, up to the interpreter's own end.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Any, Final

from p2pdp.protocols import ours, protocol

LENGTH: Final = struct.Struct("!I")
END: Final = struct.Struct("!i")
DESCRIPTORS_MAX: Final = 5
PRELOADED: Final = (
    "p2pdp.api", "p2pdp.cli.across", "p2pdp.cli.live", "p2pdp.cli.main", "p2pdp.runs.across_bootstrap",
    "p2pdp.runs.across_node", "p2pdp.runs.live", "p2pdp.runs.pages", "p2pdp.runs.plan", "p2pdp.runs.simulate",
    "p2pdp.runs.watching", "scipy.sparse.csgraph", "scipy.special",
)  # fmt: skip
_CLONE_NEWNET: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1


def serve(asked: socket.socket) -> dict[str, Any]:
    """Fork what is asked for and tell how each ends; return a request in the process that is to carry it out."""
    awake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: it ends when its starter does
    ends: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        selector.register(awake, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == awake:
                    with suppress(BlockingIOError):
                        os.read(awake, 4096)
                    _tell(ends)
                    continue
                request, descriptors = received(asked)
                child = os.fork()
                if child == 0:
                    selector.close()
                    asked.close()
                    for descriptor in (awake, *ends.values(), descriptors[3]):
                        os.close(descriptor)
                    return _settle(request, descriptors[:3], descriptors[4:])
                ends[child] = descriptors[3]
                for descriptor in (*descriptors[:3], *descriptors[4:]):
                    os.close(descriptor)
                asked.sendall(LENGTH.pack(child))


def received(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return a request and its descriptors; leave where nobody will ask any more."""
    head, descriptors, _, _ = socket.recv_fds(asked, LENGTH.size, DESCRIPTORS_MAX)
    if not head:
        sys.exit(0)
    body = b""
    while len(body) < LENGTH.unpack(head)[0]:
        body += asked.recv(1 << 16)
    request: dict[str, Any] = json.loads(body)
    return request, descriptors


def _tell(ends: dict[int, int]) -> None:
    while ends:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        pipe = ends.pop(child)
        with suppress(BrokenPipeError):  # nobody waits for it
            os.write(pipe, END.pack(os.waitstatus_to_exitcode(status)))
        os.close(pipe)


def _settle(request: dict[str, Any], streams: list[int], namespace: list[int]) -> dict[str, Any]:
    """Make this process look as if it had just been started."""
    os.close(signal.set_wakeup_fd(-1))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor in namespace:
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "the namespace cannot be entered")
        os.close(descriptor)
    if request["session"]:
        os.setsid()
    if request["mortal"]:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - to the process's end
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - same
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115 - same
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["cwd"]
    sys.argv = request["argv"]
    return request


def main() -> int:
    for name in PRELOADED:
        importlib.import_module(name)
    for name in ours():
        protocol(name).analysis()
    gc.collect()
    gc.freeze()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    module, _, function = request["main"].partition(":")
    code: int = getattr(importlib.import_module(module), function)(*request["arguments"])
    return code


if __name__ == "__main__":
    sys.exit(main())
