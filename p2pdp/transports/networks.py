"""What a node is started with to reach its peers: it attaches shells, and gets a transport for each.

Guarantee: nothing arrives before `listen`. Peers that one network serves reach each other through it, whatever
`where` says of them. A network is used once: after `close` nobody is called in any more, and each transport
ends by its own `close`.

The caller owes: `serve` is told of a peer once its number is known, and only with a transport of this network.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from p2pdp.core.ids import Peer
from p2pdp.transports.contract import Shell, Transport
from p2pdp.transports.memory import Hub, MemoryTransport
from p2pdp.transports.tcp import STRANGERS_MAX, Address, TcpListener, TcpTransport
from p2pdp.transports.ways import WAYS_MAX

Where = Callable[[Peer], Address | None]  # None where nobody knows yet


class Network(Protocol):
    @property
    def address(self) -> Address | None:
        """Where it listens; None where peers find each other without addresses."""

    @property
    def faults(self) -> Mapping[str, int]:
        """What strangers did that no host hears of, by kind."""

    def attach(self, shell: Shell, where: Where) -> Transport:
        """A transport for one shell; to be asked for within a running event loop."""

    def serve(self, peer: Peer, transport: Transport) -> None:
        """From now on who calls this peer gets to this transport."""

    async def listen(self) -> None:
        """Takes callers from now on."""

    def close(self) -> None:
        """Takes no further callers."""


class TcpNetwork:
    """Peers behind one listening socket, which is bound already: by a launcher, or where the user said.

    Whoever enrols is a stranger until the run begins, so bootstrap has to admit as many as it expects.
    """

    def __init__(
        self, listening: socket.socket, connections_max: int = WAYS_MAX, strangers_max: int = STRANGERS_MAX
    ) -> None:
        self._listening = listening
        self._connections_max = connections_max
        self._served: dict[Peer, TcpTransport] = {}
        self._listener = TcpListener(self._served.get, strangers_max)

    @property
    def address(self) -> Address:
        host, port = self._listening.getsockname()[:2]
        return host, port

    def attach(self, shell: Shell, where: Where) -> TcpTransport:
        def of(peer: Peer) -> Address | None:
            return self.address if peer in self._served else where(peer)

        return TcpTransport(shell, of, self._connections_max)

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, TcpTransport)
        self._served[peer] = transport

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

    async def listen(self) -> None:
        await self._listener.listen(self._listening)

    def close(self) -> None:
        self._listener.close()
        self._listening.close()


class MemoryNetwork:
    """Peers of one process, which all have networks of the same hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._served: dict[Peer, MemoryTransport] = {}
        self._listens = False

    @property
    def address(self) -> None:
        return None

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

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
        """A transport leaves the hub when it closes."""
