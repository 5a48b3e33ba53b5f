"""`bench hops`: hops a second, beside the rate of bare boxed hops in the same processes.

There is a process for each user, and one that conducts and times them, all on the loopback. A pair is one stretch of
each kind over all hops. Rates wander with the machine, so the median of the pairs' ratios is what counts; links are
dialled and warmed up before, and the time that dialling takes is reported apart.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any, Final

from p2pdp.bench.conductor import Conductor
from p2pdp.bench.harness import require, require_degree, require_one_of, require_transport, spec_text
from p2pdp.bench.user import BACKLOG, LOOPBACK, BenchSettings, BenchUser
from p2pdp.cluster.layout import Sockets
from p2pdp.cluster.processes import PEEKS, Main, fork, wait_for
from p2pdp.core.addresses import Address
from p2pdp.core.errors import NotReady, RunFailed
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.sampler import warm
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.transports.contract import ROLES, LocalProcess
from p2pdp.transports.registry import transport_kind

GRAPHS: Final = ("complete", "regular")
RESULT_FILE: Final = "measured.json"
LOOK_S: Final = 0.2


def bench_hops(
    nodes: int = 50,
    hops: int = 50_000,
    tokens: int = 1,
    pairs: int = 5,
    graph: str = "complete",
    degree: int = 20,
    transport: str = "tcp",
) -> dict[str, Any]:
    """Measure; `hops` counts one stretch with all its tokens. A broker, where one is needed, is started."""
    for name, value, least in (("nodes", nodes, 2), ("tokens", tokens, 1), ("pairs", pairs, 1)):
        require(value >= least, f"--{name} {value}", f"at least {least}")
    if not PEEKS:
        raise NotReady("hops: this system tells the end of a process only once; macOS needs Python 3.13 for this")
    require(hops >= tokens, f"--hops {hops}", f"at least {tokens}: each token makes one")
    require_one_of("--graph", graph, GRAPHS)
    require_transport(transport)
    each = hops // tokens
    # A walk of one token alone begins where it is told, and of several at a neighbour: always as with several.
    items = max(2, tokens * (pairs + 1))
    run = planned(nodes, each, items, graph, degree, transport)
    assert run.graph is not None
    for mechanism in run.plan.mechanisms:
        warm(mechanism)
    measured = measure_hops(run, load_data(run.spec, nodes).user, tokens=tokens, hops=each, pairs=pairs)
    links = sum(map(len, run.graph.neighbours)) // 2
    about = {"transport": transport, "nodes": nodes, "graph": graph, "degree": 2 * links / nodes, "tokens": tokens}
    return (
        about
        | {"hops": each * tokens}
        | _rates(measured, each * tokens)
        | _dials(measured, links)
        | _growth(measured["growth"])
    )


def planned(
    nodes: int, hops: int, tokens: int, graph: str = "complete", degree: int = 1, transport: str = "tcp"
) -> RunPlan:
    """Plan a walk of `tokens` tokens with `hops` hops each."""
    shape: dict[str, Any] = {"kind": graph}
    if graph == "regular":
        require_degree(nodes, degree, 1)
        shape["degree"] = degree
    run = {"nodes": nodes, "transport": transport}
    text = spec_text("walk", run=run, graph=shape, walk={"hops": hops, "tokens": tokens})
    return plan_run(parse_spec(text, None), nodes, 1)


def _rates(measured: dict[str, Any], hops: int) -> dict[str, Any]:
    """Return medians over all pairs, and the pairs; the first of each kind was for warming up."""
    pairs = [
        {
            "hops_per_second": hops / real["seconds"],
            "bare_hops_per_second": hops / bare["seconds"],
            "ratio": bare["seconds"] / real["seconds"],
            "cpu_us_per_hop": 1e6 * real["cpu_s"] / hops,
            "bare_cpu_us_per_hop": 1e6 * bare["cpu_s"] / hops,
        }
        for real, bare in zip(measured["real"][1:], measured["bare"][1:], strict=True)
    ]
    return {name: median(pair[name] for pair in pairs) for name in pairs[0]} | {"pairs": pairs}


def _dials(measured: dict[str, Any], links: int) -> dict[str, Any]:
    """Return the cost of dials: a connection, two key agreements, and both ends' comparison of sequence numbers."""
    seconds = measured["dial_s"]
    return {"dials": links, "dial_seconds": seconds, "dial_ms": 1e3 * seconds / links}


def _growth(users: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a node needs on average: its ledgers grow with its visits, its memory with its degree."""
    private_mib = [user["private_mib"] for user in users]
    return {
        "ledger_bytes_per_node": mean(user["ledger_bytes"] for user in users),
        "private_mib_per_node": None if None in private_mib else mean(private_mib),
    }


def measure_hops(run: RunPlan, rows: Callable[[Peer], Any], *, tokens: int, hops: int, pairs: int) -> dict[str, Any]:
    """Measure `pairs` stretches of each kind, which take turns, after one of each kind for warming up.

    In each, every one of `tokens` tokens makes `hops` hops.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        control = stack.enter_context(socket.create_server(LOOPBACK, backlog=BACKLOG))
        lifeline, mine = os.pipe()  # when this process is gone, however that comes about, the others end too
        for end in (lifeline, mine):
            stack.callback(os.close, end)
        kind, run_id = transport_kind(run.spec.run.transport), random_bytes(16)
        provision = stack.enter_context(kind.provide(run.spec))
        sockets = stack.enter_context(closing(Sockets((ROLES, *range(run.n)) if kind.opens_sockets else ())))
        provided = None if provision is None else provision.known
        one_user = LocalProcess(run.spec, run_id, (0,), sockets.descriptors, sockets.addresses, provided)
        orders = Address(*control.getsockname()[:2])
        settings = BenchSettings(folder, run_id, run, rows, orders, kind.local(one_user))

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
            child = fork(_user(settings, user), partial(_close, control, mine, sockets, user), report, lifeline)
            children.append(child)
        conductor = fork(conduct, partial(_close, None, mine, sockets, ROLES), report, lifeline)
        children.append(conductor)
        if not _ends_well(conductor, children):
            _end(children)  # others may still be saying why
            children.clear()
            reasons = [file.read_text() for file in sorted(folder.glob("failed-*"))]
            raise RunFailed(f"the benchmark failed: {' / '.join(reasons) or 'no reason was given'}")
        measured: dict[str, Any] = json.loads((folder / RESULT_FILE).read_text())
        return measured


def _close(control: socket.socket | None, lifeline: int, sockets: Sockets, slot: int) -> None:
    """Close what a child process inherits and does not need."""
    if control is not None:
        control.close()
    os.close(lifeline)
    sockets.keep_only([sockets.descriptors[slot]] if sockets.descriptors else ())


def _ends_well(conductor: int, children: list[int]) -> bool:
    """Wait until the conductor ends, or another process fails, for which it would wait for ever."""
    while True:
        codes = {child: _code(child) for child in children}
        if any(codes.values()):
            return False
        if codes[conductor] is not None:
            return True
        sleep(LOOK_S)


def _code(child: int) -> int | None:
    """Return the exit code or signal of a child, None while it runs; it can still be waited for."""
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else int(ended.si_status)


def _end(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)
    for child in children:
        wait_for(child)


def _user(settings: BenchSettings, user: Peer) -> Main:
    async def body() -> None:
        await BenchUser(settings, user).run()

    return body


async def _conduct(
    settings: BenchSettings, control: socket.socket, tokens: int, hops: int, pairs: int
) -> dict[str, Any]:
    conductor = Conductor(settings, control)
    server = await conductor.listen()
    try:
        return await _measured(conductor, tokens, hops, pairs)
    finally:
        await conductor.close()
        server.close()


async def _measured(conductor: Conductor, tokens: int, hops: int, pairs: int) -> dict[str, Any]:
    await conductor.begin()
    dial_s = await conductor.dial()
    real, bare = [], []
    for pair in range(pairs + 1):
        for kind in ("real", "bare") if pair % 2 else ("bare", "real"):  # neither always comes first
            if kind == "real":
                real.append(asdict(await conductor.real(tokens)))
            else:
                bare.append(asdict(await conductor.bare(tokens, hops)))
    return {"dial_s": dial_s, "real": real, "bare": bare, "growth": await conductor.growth()}
