"""Nodes over each kind of transport, shells that write down what they are told, and both event loops.

A story is an async function of a world. `live` makes a test of it that runs in the standard loop and in
uvloop, and fails where a task is left, a callback raised or a shell was called while it was calling.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvloop

from p2pdp.core.addresses import Address
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.transports import pool
from p2pdp.transports.contract import Origin, SendsTogether, Transport
from p2pdp.transports.memory import Hub, MemoryTransport
from p2pdp.transports.mqtt import client
from p2pdp.transports.mqtt import transport as mqtt
from p2pdp.transports.mqtt.access import Broker, Login, StationSettings
from p2pdp.transports.mqtt.endpoint import Endpoint
from p2pdp.transports.mqtt.transport import MqttTransport
from p2pdp.transports.pool import CONNECTIONS_MAX, STRANGERS_MAX
from p2pdp.transports.tcp import switchboard
from p2pdp.transports.tcp import transport as tcp
from p2pdp.transports.tcp.switchboard import KEY_BYTES, Switchboard
from p2pdp.transports.tcp.transport import SharedTransport, TcpListener, TcpTransport
from tests.support.mosquitto import shared_broker

GUARD_S = 240.0
PROBE_S = 0.1
# Times after which an end gives up: however long this process or a broker stands still, a story is not about them. A
# connection to a broker is tried again after `CONNECT_S`, which a broker that is about to leave may make necessary.
TIMES = [
    (module, name, getattr(module, name))
    for module, names in (
        (pool, "CLOSE_S"),
        (tcp, "CALL_S DIAL_S LEAVE_S"),
        (mqtt, "LEAVE_S"),
        (client, "LEAVE_S"),
        (switchboard, "CLOSE_S"),
    )
    for name in names.split()
]

Story = Callable[[Any], Awaitable[None]]
Test = Callable[[str, type[Any]], None]  # of the name of a loop and a kind of transport
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Node:
    """A shell and its transport; `react` is what the shell does when a frame arrives."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.transport: Transport
        self.origins: list[Origin] = []
        self.frames: list[bytes] = []
        self.told: list[tuple[str, Peer]] = []
        self.react: Callable[[Origin, bytes], None] = lambda _origin, _frame: None
        self.wrong: list[str] = []
        self._calling = False
        self._news = asyncio.Event()

    # What the transport calls

    def arrived(self, origin: Origin, frame: bytes) -> None:
        self._heard("arrived")
        self.origins.append(origin)
        self.frames.append(frame)
        self.react(origin, frame)

    def lost(self, peer: Peer) -> None:
        self._heard("lost")
        self.told.append(("lost", peer))

    def connected(self, peer: Peer) -> None:
        self._heard("connected")
        self.told.append(("connected", peer))

    def fail(self, error: BaseException) -> None:
        self.wrong.append(str(error))
        self._news.set()

    def _heard(self, what: str) -> None:
        if self._calling:
            self.wrong.append(f"{what} while the shell was calling")
        self._news.set()

    # What a story calls

    def send(self, peer: Peer, frame: bytes) -> None:
        self._call(self.transport.send, peer, frame)

    def send_together(self, peer: Peer, frames: list[bytes]) -> None:
        assert isinstance(self.transport, SendsTogether)
        self._call(self.transport.send_together, peer, frames)

    def answer(self, origin: Origin, frame: bytes) -> None:
        self._call(self.transport.answer, origin, frame)

    def belongs(self, origin: Origin, peer: Peer) -> None:
        self._call(self.transport.belongs, origin, peer)

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        self._calling = True
        method(*arguments)
        self._calling = False

    def believe(self) -> None:
        """Takes every frame for authentic; its second byte is who it is from."""
        self.react = lambda origin, frame: self.belongs(origin, frame[1])

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self._news.clear()
            await self._news.wait()

    async def until_frames(self, *frames: bytes) -> None:
        await self.until(lambda: len(self.frames) >= len(frames))
        assert self.frames == list(frames)

    async def until_count(self, count: int) -> None:
        await self.until(lambda: len(self.frames) >= count)
        assert len(self.frames) == count

    async def until_told(self, *told: tuple[str, Peer]) -> None:
        await self.until(lambda: len(self.told) >= len(told))
        assert self.told == list(told)


class World(ABC):
    """Nodes that can be reached once they listen, again after they stopped, and never at the same place."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def node(self, peer: Peer, connections_max: int = CONNECTIONS_MAX) -> Node:
        node = Node(peer)
        node.transport = self._transport(node, connections_max)
        self.nodes.append(node)
        return node

    async def listening(self, peer: Peer, connections_max: int = CONNECTIONS_MAX) -> Node:
        node = self.node(peer, connections_max)
        node.believe()
        await self.listen(node)
        return node

    async def close(self) -> None:
        for node in self.nodes:
            await self.stop(node)
            assert node.wrong == []

    @abstractmethod
    def _transport(self, node: Node, connections_max: int) -> Transport: ...

    @abstractmethod
    async def listen(self, *nodes: Node) -> None:
        """Behind one door, where the transport has doors."""

    @abstractmethod
    async def stop(self, node: Node) -> None: ...

    @abstractmethod
    def break_connections(self, node: Node) -> None:
        """Every connection of the node breaks, and the node goes on."""

    def kill(self, node: Node) -> None:
        """As if its process was killed and began anew: it says nothing but what its system says for it."""
        self.break_connections(node)


class MemoryWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self.hub = Hub()

    def _transport(self, node: Node, connections_max: int) -> Transport:
        return MemoryTransport(node, self.hub, connections_max)

    async def listen(self, *nodes: Node) -> None:
        for node in nodes:
            assert isinstance(node.transport, MemoryTransport)
            self.hub.listen(node.peer, node.transport)

    async def stop(self, node: Node) -> None:
        await node.transport.close()

    def break_connections(self, node: Node) -> None:
        assert isinstance(node.transport, MemoryTransport)
        for connection in list(node.transport._alive):
            connection.drop()


class TcpWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: dict[Peer, Address] = {}
        self.listeners: dict[Peer, TcpListener] = {}

    def _transport(self, node: Node, connections_max: int) -> Transport:
        return TcpTransport(node, self.addresses.get, connections_max)

    async def listen(self, *nodes: Node, strangers_max: int = STRANGERS_MAX) -> None:
        found = {node.peer: node.transport for node in nodes if isinstance(node.transport, TcpTransport)}
        listener = TcpListener(found.get, strangers_max)
        bound = loopback()
        await listener.listen(bound)
        for peer in found:
            self.listeners[peer] = listener
            self.addresses[peer] = Address(*bound.getsockname())

    async def stop(self, node: Node) -> None:
        listener = self.listeners.get(node.peer)
        if listener is not None:
            listener.close()
        await node.transport.close()

    def break_connections(self, node: Node) -> None:
        assert isinstance(node.transport, TcpTransport)
        for connection in list(node.transport._alive):
            connection.drop()


class SharedWorld(World):
    """Each node is a process with a socket; those behind one door listen at one slot, in the process of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.key = random_bytes(KEY_BYTES)
        self.boards: dict[Transport, Switchboard] = {}
        self.sockets: dict[Switchboard, socket.socket] = {}
        self.doors: list[tuple[Switchboard, TcpListener, Address]] = []
        self.slots: dict[Peer, int] = {}

    def _transport(self, node: Node, connections_max: int) -> Transport:
        bound = loopback()
        board = Switchboard(self.key, bound, lambda slot: self.doors[slot][2])
        try:
            made = SharedTransport(node, self.slots.get, board, connections_max)
        except ValueError:
            bound.close()
            raise
        self.boards[made], self.sockets[board] = board, bound
        return made

    async def listen(self, *nodes: Node) -> None:
        found = {node.peer: node.transport for node in nodes if isinstance(node.transport, SharedTransport)}
        board, slot, listener = self.boards[nodes[0].transport], len(self.doors), TcpListener(found.get)
        self.doors.append((board, listener, Address(*self.sockets[board].getsockname())))
        await board.listen(slot, listener.answer)
        self.slots |= dict.fromkeys(found, slot)

    async def stop(self, node: Node) -> None:
        for slot, (board, listener, _) in enumerate(self.doors):
            if board is self.boards[node.transport]:
                board.hang_up(slot)
                listener.close()
        await node.transport.close()

    def break_connections(self, node: Node) -> None:
        assert isinstance(node.transport, SharedTransport)
        for connection in list(node.transport._alive):
            connection.drop()


class MqttWorld(World):
    """Each node is a station of its own, never under the same name, in a run of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = shared_broker()
        self.run = random_bytes(8).hex()
        self.stations: dict[Peer, str] = {}
        self.of: dict[Node, Endpoint] = {}

    def endpoint(self, broker: Broker | None = None) -> Endpoint:
        name = f"station-{len(self.of)}"
        login = Login(f"{self.run}-{name}")
        return Endpoint(StationSettings(broker or self.broker, login, self.run, name), random_bytes)

    def _transport(self, node: Node, connections_max: int) -> Transport:
        self.of[node] = self.endpoint()
        return MqttTransport(node, self.of[node], self.stations.get, connections_max, PROBE_S)

    async def listen(self, *nodes: Node) -> None:
        for node in nodes:
            endpoint = self.of[node]
            assert isinstance(node.transport, MqttTransport)
            endpoint.served[node.peer] = node.transport
            endpoint.takes_calls = True
            endpoint.begin()
            self.stations[node.peer] = endpoint.settings.name

    async def stop(self, node: Node) -> None:
        self.of[node].takes_calls = False
        await node.transport.close()

    def break_connections(self, node: Node) -> None:
        assert isinstance(node.transport, MqttTransport)
        for connection in list(node.transport._alive):
            connection.drop()

    def kill(self, node: Node) -> None:
        for call in list(self.of[node].calls.values()):
            call._ended()


def loopback() -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(("127.0.0.1", 0))
    return bound


WORLDS: dict[type[Any], type[World]] = {
    MemoryTransport: MemoryWorld,
    TcpTransport: TcpWorld,
    SharedTransport: SharedWorld,
    MqttTransport: MqttWorld,
}


def live(*kinds: type[Any]) -> Callable[[Story], Test]:
    """Makes a test of a story, for these kinds of transports and both loops."""

    def made(story: Story) -> Test:
        def test(loop: str, kind: type[Any]) -> None:
            play(story, loop, kind)

        test.__doc__ = story.__doc__
        marked = pytest.mark.parametrize("loop", LOOPS)(test)
        both: Test = pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)(marked)
        return both

    return made


@contextmanager
def patient() -> Iterator[None]:
    """But where a test has set a time itself."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, usual in TIMES:
            if getattr(module, name) == usual:
                patch.setattr(module, name, GUARD_S)
        yield


def play(story: Story, loop: str, kind: type[Any]) -> None:
    """Runs a story once."""
    wrong: list[dict[str, Any]] = []

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        world = WORLDS[kind]()
        async with asyncio.timeout(GUARD_S):
            try:
                await story(world)
            finally:
                await world.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with patient(), asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(whole())
    gc.collect()  # what was left open warns when it is collected, and warnings are errors
    assert wrong == [], [repr(context) for context in wrong]
