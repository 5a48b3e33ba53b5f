"""What attaches shells to a transport, for both kinds: a node does not see the difference."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.transports.memory import Hub
from p2pdp.transports.networks import MemoryNetwork, Network, TcpNetwork
from p2pdp.transports.tcp import Address
from tests.support.transport_worlds import Node

FRAME = b"\1" * 256
Make = Callable[[], Network]


def tcp() -> Make:
    return lambda: TcpNetwork(socket.create_server(("127.0.0.1", 0)))


def memory() -> Make:
    hub = Hub()
    return lambda: MemoryNetwork(hub)


def attached(network: Network, peer: int, where: Callable[[int], Address | None] = lambda _peer: None) -> Node:
    node = Node(peer)
    node.transport = network.attach(node, where)
    return node


@pytest.mark.parametrize("kind", [tcp, memory])
async def test_a_peer_is_reached_where_it_is_served_once_it_listens(kind: Callable[[], Make]) -> None:
    make = kind()
    near, far = make(), make()
    one = attached(near, 1, lambda _peer: far.address)
    two = attached(far, 2)
    async with asyncio.timeout(30):
        far.serve(2, two.transport)
        one.send(2, FRAME)
        await asyncio.sleep(0)
        assert two.frames == []
        await far.listen()
        await two.until_frames(FRAME)
        for network, node in ((near, one), (far, two)):
            network.close()
            await node.transport.close()


@pytest.mark.parametrize("kind", [tcp, memory])
async def test_two_peers_of_one_network_reach_each_other_whatever_is_said_of_them(kind: Callable[[], Make]) -> None:
    network = kind()()
    bootstrap, curator = attached(network, BOOTSTRAP), attached(network, CURATOR)
    async with asyncio.timeout(30):
        network.serve(BOOTSTRAP, bootstrap.transport)
        await network.listen()
        network.serve(CURATOR, curator.transport)
        bootstrap.send(CURATOR, FRAME)
        await curator.until_frames(FRAME)
        network.close()
        for node in (bootstrap, curator):
            await node.transport.close()


async def test_an_address_is_that_of_the_socket_and_memory_needs_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        assert TcpNetwork(bound).address == bound.getsockname()
    assert MemoryNetwork(Hub()).address is None


async def test_as_many_strangers_are_let_in_as_are_expected() -> None:
    network = TcpNetwork(socket.create_server(("127.0.0.1", 0)), strangers_max=1)
    await network.listen()
    async with asyncio.timeout(30):
        first, gone = await asyncio.open_connection(*network.address)
        _, second = await asyncio.open_connection(*network.address)
        assert await first.read() == b""  # the one that came first has to go
        for writer in (gone, second):
            writer.close()
            await writer.wait_closed()
    network.close()
