"""A baseline forks, so it is measured in a process of its own (`tests/cli/test_bench.py`); here, its users meet."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

import pytest

from p2pdp.bench.bare_gossip import BareUser
from p2pdp.core.errors import RunFailed

ROUNDS = 7


def key(one: int, other: int) -> bytes:
    return bytes([min(one, other) + 1, max(one, other) + 1]) * 16


async def test_users_make_all_rounds_and_none_is_more_than_one_ahead_of_a_neighbour() -> None:
    neighbours = [[1], [0, 2], [1, 3], [2]]
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in neighbours]
    ports = [server.getsockname()[1] for server in servers]
    rounds = [0] * len(neighbours)

    class Counted(BareUser):
        def frame(self, peer: int, frame: bytes) -> None:
            super().frame(peer, frame)
            assert len(frame) == 256
            rounds[self.me] = self._round
            assert all(abs(one - other) <= 1 for one, other in pairwise(rounds))

    users = [Counted(me, {peer: key(me, peer) for peer in peers}, 256, ROUNDS) for me, peers in enumerate(neighbours)]
    await asyncio.gather(*(user.connect(server, ports) for user, server in zip(users, servers, strict=True)))
    await asyncio.gather(*(user.exchange() for user in users))
    assert rounds == [ROUNDS] * len(neighbours)
    for user in users:
        user.close()
    await asyncio.sleep(0)


async def test_a_frame_of_another_key_is_not_opened() -> None:
    for size in (256, 20480):
        user = BareUser(0, {1: bytes(32)}, size, 1)
        with pytest.raises(RunFailed):
            user.frame(1, bytes(size))
