"""The processes of `bench hops`: one a user, and one that conducts and times them; all on the loopback."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any, Final

from p2pdp.cluster.children import Body, fork, wait_for
from p2pdp.cluster.stations import broker_for, networks_of
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.stations import ROLES_STATION, user_station
from p2pdp.crypto.entropy import random_bytes
from p2pdp.node.bench_boss import BenchBoss
from p2pdp.node.bench_user import BACKLOG, LOOPBACK, BenchSettings, BenchUser
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.transports.tcp import STRANGERS_MAX
from p2pdp.transports.ways import WAYS_MAX

RESULT_FILE: Final = "measured.json"
LOOK_S: Final = 0.2


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
        own = stack.enter_context(broker_for(run.spec))
        if own is not None:
            networks = networks_of(run.spec, settings.run_id, own.known)
            settings = replace(settings, network=lambda peer: networks(_station(peer), WAYS_MAX, STRANGERS_MAX))

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
        conductor = fork(conduct, lambda: os.close(mine), report, lifeline)
        children.append(conductor)
        if not _ends_well(conductor, children):
            _end(children)  # others may still be saying why
            children.clear()
            reasons = [file.read_text() for file in sorted(folder.glob("failed-*"))]
            raise RunFailed(f"the benchmark failed: {' / '.join(reasons) or 'nobody said why'}")
        measured: dict[str, Any] = json.loads((folder / RESULT_FILE).read_text())
        return measured


def _station(peer: Peer) -> str:
    return user_station(peer) if is_user(peer) else ROLES_STATION


def _close(control: socket.socket, lifeline: int) -> None:
    control.close()
    os.close(lifeline)


def _ends_well(conductor: int, children: list[int]) -> bool:
    """Waits for the end of the conductor, or of somebody who failed and for whom it would wait for ever."""
    while True:
        codes = {child: _code(child) for child in children}
        if any(codes.values()):
            return False
        if codes[conductor] is not None:
            return True
        sleep(LOOK_S)


def _code(child: int) -> int | None:
    """Its exit code (of a signal: its number), None while it runs; it can still be waited for."""
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else int(ended.si_status)


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
    try:
        return await _measured(boss, tokens, hops, pairs)
    finally:
        await boss.close()
        server.close()


async def _measured(boss: BenchBoss, tokens: int, hops: int, pairs: int) -> dict[str, Any]:
    await boss.begin()
    dial_s = await boss.dial()
    rests, real, bare = [], [], []
    for pair in range(pairs + 1):
        for kind in ("real", "bare") if pair % 2 else ("bare", "real"):  # neither always comes first
            rest, draws = await boss.rest()  # else they would draw ahead during a bare stretch
            rests.append(asdict(rest) | {"draws": draws})
            if kind == "real":
                real.append(asdict(await boss.real(tokens)))
            else:
                bare.append(asdict(await boss.bare(tokens, hops)))
    return {"dial_s": dial_s, "rest": rests, "real": real, "bare": bare, "growth": await boss.growth()}
