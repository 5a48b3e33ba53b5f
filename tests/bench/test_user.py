from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from nacl.exceptions import CryptoError

from p2pdp.bench.conductor import Conductor
from p2pdp.bench.hops import planned
from p2pdp.bench.user import BARE, BareNode, BenchSettings, BenchUser
from p2pdp.cluster.layout import Sockets
from p2pdp.core.addresses import Address
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import RunKey
from p2pdp.files.data import load_data
from p2pdp.ledger.records import RECEIVED, chain_problem, read
from p2pdp.transports.contract import ROLES, LocalProcess
from p2pdp.transports.tcp.kind import KIND
from p2pdp.wire.padding import FRAME_SIZES

N, HOPS = 3, 30


async def test_a_conductor_and_its_users_walk_both_kinds_of_hops_and_leave_ledgers(tmp_path: Path) -> None:
    run = planned(N, HOPS, 4)
    control = socket.create_server(("127.0.0.1", 0))
    sockets = Sockets((ROLES, *range(N)))
    networks = KIND.local(LocalProcess(run.spec, bytes(16), (0,), sockets.descriptors, sockets.addresses))
    rows = load_data(run.spec, N).user
    settings = BenchSettings(tmp_path, bytes(16), run, rows, Address(*control.getsockname()), networks)
    conductor = Conductor(settings, control)
    server = await conductor.listen()
    users = [asyncio.ensure_future(BenchUser(settings, user).run()) for user in range(N)]
    await conductor.begin()
    assert await conductor.dial() > 0
    real = [await conductor.real(2), await conductor.real(1)]
    bare = await conductor.bare(2, HOPS)
    assert all(stretch.seconds > 0 for stretch in (*real, bare))
    growth = await conductor.growth()
    await conductor.close()
    server.close()
    await asyncio.gather(*users)
    views = [(tmp_path / f"{user:04d}" / "view.ledger").read_bytes() for user in range(N)]
    contents = [read(view) for view in views]
    assert all(chain_problem(content) is None for content in contents)
    assert sum(record.kind == RECEIVED for content in contents for record in content.records) > HOPS
    assert sum(user["ledger_bytes"] for user in growth) >= sum(map(len, views))


class Bare:
    """Bare nodes whose frames a test carries."""

    def __init__(self, n: int) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.done: list[int] = []
        keys = [RunKey(random_bytes(32)) for _ in range(n)]
        self.nodes = [self._node(user, n) for user in range(n)]
        for user, node in enumerate(self.nodes):
            others = {peer: keys[peer].public for peer in range(n) if peer != user}
            node.agree(keys[user].to_bytes(), others)

    def _node(self, user: int, n: int) -> BareNode:
        return BareNode(
            user, range(n), lambda to, frame: self.frames.append((to, frame)), lambda: self.done.append(user)
        )

    def carry(self) -> list[bytes]:
        seen = []
        while self.frames:
            to, frame = self.frames.pop(0)
            seen.append(frame)
            self.nodes[to].hop(None, frame)
        return seen


def test_a_token_makes_its_hops_and_ends_once() -> None:
    world = Bare(4)
    world.nodes[0].begin(200)
    frames = world.carry()
    assert len(world.done) == 1
    assert 100 < len(frames) < 200  # a quarter of all draws choose the holder itself, with no frame
    assert {len(frame) for frame in frames} == {FRAME_SIZES[0]}
    assert {frame[1] for frame in frames} == {BARE}
    assert len({frame[6:30] for frame in frames}) == len(frames), "no nonce comes twice"


def test_a_token_of_one_hop_goes_nowhere() -> None:
    world = Bare(2)
    world.nodes[1].begin(1)
    assert (world.frames, world.done) == ([], [1])


def test_a_frame_is_authentic_or_refused() -> None:
    world = Bare(2)
    while not world.frames:
        world.nodes[0].begin(1000)
    to, frame = world.frames.pop()
    with pytest.raises(CryptoError):
        world.nodes[to].hop(None, frame[:-1] + bytes([frame[-1] ^ 1]))
