"""Bootstrap, curator and users in one event loop, over real sockets on the loopback."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.jobs import Job
from p2pdp.cluster.peers import roles_main, user_main
from p2pdp.core.addresses import Address, Place
from p2pdp.crypto.identity import Identity
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.node import roles
from p2pdp.node.disk import durable_secret
from p2pdp.protocols.run_plan import plan_run
from p2pdp.transports.contract import ROLES, LocalNetworks
from p2pdp.transports.tcp.kind import TcpNetwork

SPEC = """[run]
protocol = "walk.sum"
nodes = 3
seed = 1
patience_s = 5
[graph]
kind = "ring"
[walk]
order = "ring"
laps = 2
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def soon(text: str = SPEC, seconds: float = 0.5) -> str:
    """The same, with little time left."""
    moment = datetime.fromtimestamp(time.time() + seconds, UTC)
    return text.replace("seed = 1", f'seed = 1\nexpires = "{moment.isoformat()}"', 1)


def job_in(folder: Path, text: str = SPEC) -> Job:
    spec = parse_spec(text, folder)
    data = load_data(spec, spec.run.nodes)
    plan = plan_run(spec, spec.run.nodes, data.dimensions)
    folder.mkdir(exist_ok=True)
    (folder / "spec.toml").write_text(spec_to_toml(spec))
    identity = Identity(durable_secret(folder / "curator" / "bootstrap" / "identity.key"))
    return Job(
        spec=spec,
        folder=folder,
        run_id=bytes(range(16)),
        text=spec_to_toml(spec),
        digest=spec_digest(spec),
        bootstrap_public=identity.public,
        secrets=[bytes([number]) * 16 for number in range(spec.run.nodes)],
        plan=lambda _n, _rows=None: plan,
        rows=lambda _n, user: data.user(user),
    )


def bound() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


def alone(listening: socket.socket, bootstrap: Place | None = None) -> LocalNetworks:
    """Those of a process of one peer, which knows where bootstrap is and nobody else."""
    return LocalNetworks(lambda _slot: TcpNetwork(listening), lambda slot: bootstrap if slot == ROLES else None)


async def run_all(job: Job, guard_s: float = 60.0) -> list[dict[str, Any]]:
    """Runs everybody to the end; gives the events of the life cycle."""
    sockets = [bound() for _ in range(job.slots + 1)]
    addresses = [Address(*each.getsockname()) for each in sockets]
    networks = LocalNetworks(lambda slot: TcpNetwork(sockets[slot + 1]), lambda slot: addresses[slot + 1])
    events, tell = os.pipe()
    try:
        bodies = [roles_main(job, networks, tell), *(user_main(job, user, networks) for user in range(job.slots))]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(roles, "LINGER_S", 0.1)  # nobody crashes here who would hand in his head again
            tasks = [asyncio.ensure_future(body()) for body in bodies]
            try:
                async with asyncio.timeout(guard_s):
                    await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)  # the others end before their sockets do
    finally:
        os.close(tell)
        with os.fdopen(events, "rb") as lines:
            said = [json.loads(line) for line in lines]
        for each in sockets:
            each.close()
    return said
