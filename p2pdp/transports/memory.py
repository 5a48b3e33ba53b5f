"""Frames between nodes of one process: the same connections as over sockets, without the sockets.

Guarantee: a frame is handed over by a later callback of the event loop, in the order of sending; what a
node was sent over one connection and has not taken yet is bounded in frames and bytes, and what is above that is
dropped, so that one that sends much keeps nobody else out.

The caller owes: all transports of a `Hub` live in one event loop. A node is reached from the moment it
listens as a peer, and frames for a peer that nobody is yet wait with the sender.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.transports.contract import LocalNetworks, LocalProcess, Shell, Transport, TransportKind, Where
from p2pdp.transports.pool import CONNECTIONS_MAX, Connection, ConnectionPool, FrameQueue


class Hub:
    """The meeting point of the transports of one process."""

    def __init__(self) -> None:
        self._listening: dict[Peer, MemoryTransport] = {}
        self._seeking: dict[Peer, dict[MemoryTransport, None]] = {}

    def listen(self, peer: Peer, transport: MemoryTransport) -> None:
        """Pass frames for the peer to this transport from now on, instead of an earlier one."""
        self._listening[peer] = transport
        for seeker in self._seeking.pop(peer, ()):
            seeker.found(peer, transport)

    def find(self, peer: Peer, seeker: MemoryTransport) -> MemoryTransport | None:
        """Return who listens as the peer; None where nobody does yet, and the seeker is told later."""
        transport = self._listening.get(peer)
        if transport is None:
            self._seeking.setdefault(peer, {})[seeker] = None
        return transport

    def forget(self, transport: MemoryTransport) -> None:
        for peer in [peer for peer, listening in self._listening.items() if listening is transport]:
            del self._listening[peer]
        for seekers in self._seeking.values():
            seekers.pop(transport, None)


class _End(Connection):
    """One end of a connection between two transports."""

    def __init__(self, owner: MemoryTransport, peer: Peer | None) -> None:
        self.owner = owner
        self.peer = peer
        self.other: _End | None = None
        self.inbox = FrameQueue()  # what came over this connection and was not handed over yet

    def write(self, frame: bytes) -> None:
        if self.other is not None:
            self.other.owner.take(self.other, frame)

    def proved(self) -> None:
        """Do nothing: strangers are not counted inside one process."""

    def leave(self) -> None:
        asyncio.get_running_loop().call_soon(self._leave)  # behind the frames that were written before

    def _leave(self) -> None:
        if self.other is not None:
            self.other.owner.left(self.other)
            self.drop()

    def finish(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Close; both ends hear of it after the frames that were written before."""
        other, self.other = self.other, None
        if other is not None:
            other.other = None
            for end in (self, other):
                asyncio.get_running_loop().call_soon(end.owner.closed, end)


class MemoryTransport(ConnectionPool):
    def __init__(self, shell: Shell, hub: Hub, connections_max: int = CONNECTIONS_MAX) -> None:
        super().__init__(shell, connections_max)
        self._hub = hub

    def take(self, end: _End, frame: bytes) -> None:
        if end.inbox.add(frame):
            asyncio.get_running_loop().call_soon(self._hand_over, end)

    def _hand_over(self, end: _End) -> None:
        self.arrived(end, end.inbox.take())

    def found(self, peer: Peer, transport: MemoryTransport) -> None:
        if peer not in self._queues:
            return  # the peer came to us in the meantime
        mine, theirs = _End(self, peer), _End(transport, None)
        mine.other, theirs.other = theirs, mine
        transport.opened(theirs)
        self.opened(mine)

    def _reach(self, peer: Peer) -> None:
        transport = self._hub.find(peer, self)
        if transport is not None:
            self.found(peer, transport)

    async def _give_up(self) -> None:
        self._hub.forget(self)


class MemoryNetwork:
    """Peers of one process, which all have networks of the same hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._served: dict[Peer, MemoryTransport] = {}
        self._listens = False

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

    def place(self, _text: str) -> None:
        return None

    def attach(self, shell: Shell, where: Where) -> MemoryTransport:
        return MemoryTransport(shell, self._hub)

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, MemoryTransport)
        self._served[peer] = transport
        if self._listens:
            self._hub.listen(peer, transport)

    async def listen(self) -> None:
        self._listens = True
        for peer, transport in self._served.items():
            self._hub.listen(peer, transport)

    def close(self) -> None:
        """Do nothing: a transport leaves the hub when it closes."""


class Memory(TransportKind):
    name = "memory"
    in_one_process = True

    def local(self, process: LocalProcess) -> LocalNetworks:
        hub = Hub()
        return LocalNetworks(lambda _slot: MemoryNetwork(hub), lambda _slot: None)


KIND: Final = Memory()
