"""The processes of `bench hops`: one a user, and one that conducts and times them; all on the loopback."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from p2pdp.cluster.children import Body, fork, wait_for
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.node.bench_boss import BenchBoss
from p2pdp.node.bench_user import BACKLOG, LOOPBACK, BenchSettings, BenchUser
from p2pdp.protocols.run_plan import RunPlan

RESULT_FILE: Final = "measured.json"


def measure_hops(run: RunPlan, rows: Callable[[Peer], Any], *, tokens: int, hops: int, pairs: int) -> dict[str, Any]:
    """Measures `pairs` stretches of each kind, which take turns, after one of each kind for warming up.

    In each, every one of `tokens` tokens makes `hops` hops.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        control = stack.enter_context(socket.create_server(LOOPBACK, backlog=BACKLOG))
        lifeline, mine = os.pipe()  # when this process is gone, however that comes about, the others end too
        for end in (lifeline, mine):
            stack.callback(os.close, end)
        settings = BenchSettings(folder, random_bytes(16), run, rows, control.getsockname()[:2])

        async def conduct() -> None:
            (folder / RESULT_FILE).write_text(json.dumps(await _conduct(settings, control, tokens, hops, pairs)))

        def report(_kind: str, text: str) -> None:
            (folder / f"failed-{os.getpid()}").write_text(text)

        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        children: list[int] = []
        stack.callback(_end, children)
        for user in range(run.n):
            child = fork(_user(settings, user), partial(_close, control, mine), report, lifeline)
            children.append(child)
        code = wait_for(fork(conduct, lambda: os.close(mine), report, lifeline))
        if code != 0:
            _end(children)  # whoever failed first may still be saying why
            children.clear()
            reasons = [file.read_text() for file in sorted(folder.glob("failed-*"))]
            raise RunFailed(f"the benchmark failed: {' / '.join(reasons) or 'nobody said why'}")
        measured: dict[str, Any] = json.loads((folder / RESULT_FILE).read_text())
        return measured


def _close(control: socket.socket, lifeline: int) -> None:
    control.close()
    os.close(lifeline)


def _end(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)
    for child in children:
        wait_for(child)


def _user(settings: BenchSettings, user: Peer) -> Body:
    async def body() -> None:
        await BenchUser(settings, user).run()

    return body


async def _conduct(
    settings: BenchSettings, control: socket.socket, tokens: int, hops: int, pairs: int
) -> dict[str, Any]:
    boss = BenchBoss(settings, control)
    server = await boss.listen()
    await boss.begin()
    dial_s = await boss.timed("dial")
    real, bare = [], []
    for pair in range(pairs + 1):
        for kind in ("real", "bare") if pair % 2 else ("bare", "real"):  # neither always comes first
            if kind == "real":
                real.append(asdict(await boss.real(tokens)))
            else:
                bare.append(asdict(await boss.bare(tokens, hops)))
    growth = await boss.growth()
    await boss.close()
    server.close()
    return {"dial_s": dial_s, "real": real, "bare": bare, "growth": growth}
