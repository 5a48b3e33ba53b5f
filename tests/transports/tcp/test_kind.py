"""What attaches shells to TCP and to memory, where a node does not see the difference; endpoints on machines."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable

import pytest

from p2pdp.core.addresses import Place, split_address
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files.spec import parse_spec
from p2pdp.transports.contract import Listening, Network
from p2pdp.transports.memory import Hub, MemoryNetwork
from p2pdp.transports.pool import CONNECTIONS_MAX, STRANGERS_MAX
from p2pdp.transports.tcp.kind import (
    FILES_SPARE,
    KIND,
    TcpNetwork,
    announcer,
    connections_of_roles,
    host_towards,
    listen_at,
)
from tests.support.local import SPEC
from tests.support.transport_worlds import Node

FRAME = b"\1" * 256
Make = Callable[[], Network]


def tcp() -> Make:
    return lambda: TcpNetwork(socket.create_server(("127.0.0.1", 0)))


def memory() -> Make:
    hub = Hub()
    return lambda: MemoryNetwork(hub)


def attached(network: Network, peer: int, where: Callable[[int], Place | None] = lambda _peer: None) -> Node:
    node = Node(peer)
    node.transport = network.attach(node, where)
    return node


@pytest.mark.parametrize("kind", [tcp, memory])
async def test_a_peer_is_reached_where_it_is_served_once_it_listens(kind: Callable[[], Make]) -> None:
    make = kind()
    near, far = make(), make()
    one = attached(near, 1, lambda _peer: far.address if isinstance(far, TcpNetwork) else None)
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


def test_an_address_is_that_of_the_socket_and_memory_knows_no_places() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        network = TcpNetwork(bound)
        assert network.address == network.place(str(network.address)) == bound.getsockname()
    assert MemoryNetwork(Hub()).place("127.0.0.1:7") is None


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


def test_connections_are_shared_out_so_that_files_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (20_000, 20_000))
    assert connections_of_roles(4000) == (4000, 4000 + STRANGERS_MAX)
    assert connections_of_roles(3)[0] == CONNECTIONS_MAX
    assert connections_of_roles(10_000) == (4950, 9900)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 1024))
    ways, strangers = connections_of_roles(4000)
    assert 2 * ways + strangers <= 1024 - FILES_SPARE


@pytest.mark.parametrize(
    ("listening", "says"),
    [
        (Listening(None), "--listen: missing"),
        (Listening("0.0.0.0:1"), "add --address"),
        (Listening("127.0.0.1:0", "0.0.0.0:1"), "--address 0.0.0.0:1"),
        (Listening("here"), "--listen here: must read"),
    ],
)
def test_what_nobody_could_reach_is_refused(listening: Listening, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        KIND.check_listening(parse_spec(SPEC, None), listening)


def test_bootstrap_comes_back_to_its_port_and_tokens_may_name_another_host() -> None:
    spec, free = parse_spec(SPEC, None), Listening("127.0.0.1:0")
    with KIND.roles_endpoint(spec, bytes(16), free, None, print) as endpoint:
        assert endpoint.listen == endpoint.address
        before = endpoint.listen
    with KIND.roles_endpoint(spec, bytes(16), free, before, print) as again:
        assert (again.listen, again.address) == (before, before)
    assert KIND.listening_again(before, "gate:9") == Listening(before, "gate:9")
    with KIND.roles_endpoint(spec, bytes(16), Listening("127.0.0.1:0", "gate:0"), before, print) as named:
        assert named.address == f"gate:{split_address(before).port}"


EVERYWHERE = "0.0.0.0"  # noqa: S104 - as an owner would write it
HERE = ("127.0.0.1", 9)


def test_a_free_port_is_taken_and_can_be_dialled() -> None:
    with listen_at(("127.0.0.1", 0), "--listen") as bound:
        host, port = bound.getsockname()
        assert host == "127.0.0.1"
        socket.create_connection((host, port)).close()
    listen_at((host, port), "--listen").close()  # at once, although a connection was there


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        (("127.0.0.1", None), NotReady, "the port is in use"),
        (("192.0.2.1", 0), NotReady, "no such address"),
        (("no machine", 1), UsageError, "cannot resolve"),
    ],
)
def test_where_nobody_can_listen(place: tuple[str, int | None], error: type[Exception], says: str) -> None:
    with listen_at(("127.0.0.1", 0), "x") as taken:
        port = taken.getsockname()[1] if place[1] is None else place[1]
        with pytest.raises(error, match=says) as caught:
            listen_at((place[0], port), "[node] listen")
        assert str(caught.value).startswith(f"[node] listen {place[0]}:{port}: ")


async def test_others_are_told_where_the_socket_is_reached() -> None:
    with listen_at((EVERYWHERE, 0), "x") as everywhere, listen_at(("127.0.0.1", 0), "x") as here:
        ports = everywhere.getsockname()[1], here.getsockname()[1]
        assert await announcer(None, everywhere, HERE)() == f"127.0.0.1:{ports[0]}"
        assert await announcer(None, here, ("192.0.2.1", 9))() == f"127.0.0.1:{ports[1]}"
        assert await announcer("gate.example.org:80", everywhere, HERE)() == "gate.example.org:80"


async def test_there_may_be_no_way() -> None:
    assert await host_towards(("no machine", 1)) is None
    assert await host_towards(HERE) == "127.0.0.1"
