"""Work in a fresh interpreter, for callers whose process has threads or a running loop.

A run forks its nodes and takes signals, and a forked child of a process with threads may inherit a lock that nobody
will ever release. So a process of its own does it. It gets its order through standard input, so no value is in a file,
an argument or the environment, and says on standard output what happens, a JSON document a line. Whoever waits for it
and is cancelled interrupts it in good order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgpack

from p2pdp.core.errors import P2pdpError, RunFailed

Tell = Callable[[dict[str, Any]], None]
_LINE_BYTES_MAX: Final = 1 << 20
_DONE: Final = "done"
_FAILED: Final = "failed"


async def ask(module: str, order: Mapping[str, Any], on_event: Tell) -> Any:
    """Let a fresh interpreter run this module, which serves the order; return its answer."""
    home = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        limit=_LINE_BYTES_MAX,
    )
    try:
        return await _answer(process, msgpack.packb(order), on_event)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _answer(process: asyncio.subprocess.Process, order: bytes, on_event: Tell) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order)
    process.stdin.write_eof()
    async for line in process.stdout:
        told = json.loads(line)
        if _DONE in told:
            await process.wait()
            return told[_DONE]
        if _FAILED in told:
            await process.wait()
            kinds: dict[str, type[P2pdpError]] = {kind.__name__: kind for kind in P2pdpError.__subclasses__()}
            raise kinds.get(told[_FAILED], RunFailed)(told["text"])
        on_event(told)
    raise RunFailed(f"the process of the run ended with exit code {await process.wait()}; p2pdp resume goes on with it")


def serve(work: Callable[[Any, Tell], Any]) -> None:
    """Do what standard input asks for, and say on standard output what comes of it."""
    parts = []
    while part := os.read(0, 1 << 20):
        parts.append(part)
    try:
        _tell({_DONE: work(msgpack.unpackb(b"".join(parts)), _tell)})
    except P2pdpError as error:
        _tell({_FAILED: type(error).__name__, "text": str(error)})


def _tell(document: dict[str, Any]) -> None:
    os.write(1, json.dumps(document).encode() + b"\n")
