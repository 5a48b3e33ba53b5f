"""The kind of transport that a spec calls `tcp`: each peer listens at an address of its own.

In a local run the sockets are bound by the launcher, and users who share a process share one (`switchboard.py`). Across
machines each node listens where its owner said, and signs the address at which others reach it: the one its owner gave,
else that of this machine towards bootstrap.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Final

from p2pdp.core.addresses import Address, Station, is_wildcard, join_address, split_address, split_option
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.entropy import random_bytes
from p2pdp.transports.contract import (
    ROLES,
    Listening,
    LocalNetworks,
    LocalProcess,
    NodeEndpoint,
    NodeSettings,
    Provision,
    RolesEndpoint,
    Say,
    Shell,
    Transport,
    TransportKind,
    Where,
)
from p2pdp.transports.pool import CONNECTIONS_MAX, STRANGERS_MAX
from p2pdp.transports.tcp.switchboard import BACKLOG, Switchboard
from p2pdp.transports.tcp.switchboard import KEY_BYTES as SHARED_KEY_BYTES
from p2pdp.transports.tcp.transport import SharedTransport, TcpListener, TcpTransport

FILES_SPARE: Final = 200  # open files beside sockets
NODE_FILES: Final = 4  # of each of several nodes in a process: its ledgers, what it reads or replaces


class TcpNetwork:
    """Peers behind one listening socket, which is bound already: by a launcher, or where the user said.

    Whoever enrols is a stranger until the run begins, so bootstrap has to admit as many as it expects.
    """

    def __init__(
        self, listening: socket.socket, connections_max: int = CONNECTIONS_MAX, strangers_max: int = STRANGERS_MAX
    ) -> None:
        self._listening = listening
        self._connections_max = connections_max
        self._served: dict[Peer, TcpTransport] = {}
        self._listener = TcpListener(self._served.get, strangers_max)

    @property
    def address(self) -> Address:
        return Address(*self._listening.getsockname()[:2])

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

    def place(self, text: str) -> Address:
        return split_address(text)

    def attach(self, shell: Shell, where: Where) -> TcpTransport:
        def of(peer: Peer) -> Address | None:
            place = self.address if peer in self._served else where(peer)
            return place if isinstance(place, Address) else None

        return TcpTransport(shell, of, self._connections_max)

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, TcpTransport)
        self._served[peer] = transport

    async def listen(self) -> None:
        await self._listener.listen(self._listening)

    def close(self) -> None:
        self._listener.close()
        self._listening.close()


class SharedNetwork:
    """Peers at one slot of a process that several users share."""

    def __init__(
        self, board: Switchboard, slot: int, connections_max: int = CONNECTIONS_MAX, strangers_max: int = STRANGERS_MAX
    ) -> None:
        self._board = board
        self._slot = slot
        self._connections_max = connections_max
        self._served: dict[Peer, SharedTransport] = {}
        self._listener = TcpListener(self._served.get, strangers_max)

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

    def place(self, _text: str) -> None:
        return None

    def attach(self, shell: Shell, where: Where) -> SharedTransport:
        def of(peer: Peer) -> int | None:
            place = Station(str(self._slot)) if peer in self._served else where(peer)
            return int(place.name) if isinstance(place, Station) else None

        return SharedTransport(shell, of, self._board, self._connections_max)

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, SharedTransport)
        self._served[peer] = transport

    async def listen(self) -> None:
        await self._board.listen(self._slot, self._listener.answer)

    def close(self) -> None:
        self._board.hang_up(self._slot)
        self._listener.close()


class SharedKey:
    """The key that the launcher provides to processes of several users."""

    def __init__(self) -> None:
        self.known = {"key": random_bytes(SHARED_KEY_BYTES).hex()}

    def check(self) -> None:
        """Do nothing: a key does not end."""


class Tcp(TransportKind):
    name = "tcp"
    opens_sockets = True
    schemes = ("",)

    def provide(self, spec: Spec) -> AbstractContextManager[Provision | None]:
        return nullcontext(SharedKey())

    def local(self, process: LocalProcess) -> LocalNetworks:
        nodes, listening = process.spec.run.nodes, process.listening
        if process.together > 1:
            return _shared(process)

        def network(slot: int) -> TcpNetwork:
            return TcpNetwork(
                socket.socket(fileno=listening[slot]), *(connections_of_roles(nodes) if slot == ROLES else ())
            )

        return LocalNetworks(network, process.addresses.get)

    def check_listening(self, spec: Spec, listening: Listening) -> None:
        listen, address = listening.listen, listening.address
        if address is not None and is_wildcard(split_option("--address", address).host):
            raise UsageError(
                f"--address {address}: is not reachable from other machines; name the host where they reach this one"
            )
        if listen is None:
            raise UsageError("--listen: missing; say where bootstrap is to listen, as HOST:PORT")
        if address is None and is_wildcard(split_option("--listen", listen).host):
            raise UsageError(f"--listen {listen}: is not reachable from other machines; add --address HOST:PORT")

    def listening_again(self, listen: str, address: str) -> Listening:
        return Listening(listen, address)

    @contextmanager
    def roles_endpoint(
        self, spec: Spec, run_id: bytes, listening: Listening, before: str | None, say: Say
    ) -> Iterator[RolesEndpoint]:
        host, port = split_option("--listen", listening.listen or "")
        if port == 0 and before is not None:
            port = split_option("--listen", before).port
        with closing(listen_at(Address(host, port), "--listen")) as bound:
            network = TcpNetwork(bound, *connections_of_roles(spec.run.nodes))
            listen = join_address(host, network.address.port)
            told = Address(host, 0) if listening.address is None else split_option("--address", listening.address)
            address = join_address(told.host, told.port or network.address.port)
            yield RolesEndpoint(network, address, listen, f"listening on {listen}")

    def check_bootstrap(self, address: str) -> None:
        split_address(address)

    def check_node(self, given: Collection[str]) -> None:
        if "listen" not in given:
            raise UsageError("[node] listen: missing; a node needs it.")

    @contextmanager
    def node_endpoint(self, settings: NodeSettings, say: Say) -> Iterator[NodeEndpoint]:
        assert settings.listen is not None
        bootstrap = split_address(settings.bootstrap)
        with closing(listen_at(settings.listen, f"{settings.source} [node] listen")) as bound:
            yield NodeEndpoint(TcpNetwork(bound), bootstrap, announcer(settings.address, bound, bootstrap))


KIND: Final = Tcp()


def _shared(process: LocalProcess) -> LocalNetworks:
    """Return networks of users who share processes: their connections take no files."""
    assert process.provided is not None
    (bound,), users = process.listening.values(), process.spec.run.nodes

    def place_of(slot: int) -> Address:
        return process.addresses[slot if slot == ROLES else slot - slot % process.together]

    strangers_max = len(process.addresses) + STRANGERS_MAX  # all processes may dial at once
    board = Switchboard(bytes.fromhex(process.provided["key"]), socket.socket(fileno=bound), place_of, strangers_max)

    def network(slot: int) -> SharedNetwork:
        if slot == ROLES:
            return SharedNetwork(board, slot, max(CONNECTIONS_MAX, users), users + STRANGERS_MAX)
        return SharedNetwork(board, slot)

    return LocalNetworks(network, lambda slot: Station(str(slot)))


def connections_of_roles(users: int) -> tuple[int, int]:
    """Return how many connections with users bootstrap and curator each may have, and how many with strangers.

    Whoever enrols is a stranger until it is ready, and most of the files are free for them until then.
    """
    half = max(4, _files() // 2)
    return min(max(CONNECTIONS_MAX, users), half // 2), min(users + STRANGERS_MAX, half)


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (1 << 20 if soft == resource.RLIM_INFINITY else soft) - FILES_SPARE


def listen_at(place: Address, what: str) -> socket.socket:
    """Return a listening socket; `what` names the option or key that holds the address."""
    host, port = place
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror:
        raise UsageError(f"{what} {join_address(host, port)}: cannot resolve this host name") from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for old connections
        bound.bind(where)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise NotReady(f"{what} {join_address(host, port)}: {_why(error)}") from None
    return bound


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use; choose another, or end the process that listens there"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address"
    return str(error.strerror)


async def host_towards(there: Address) -> str | None:
    """Return the address of this machine from which the other is reached; None while there is no route.

    A datagram socket that is connected sends nothing: the system just chooses the route.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*there, type=socket.SOCK_DGRAM)
        family, _, _, _, where = found[0]
        with socket.socket(family, socket.SOCK_DGRAM) as towards:
            towards.connect(where)
            return str(towards.getsockname()[0])
    except OSError:
        return None


def announcer(told: str | None, bound: socket.socket, there: Address) -> Callable[[], Awaitable[str | None]]:
    """Return what tells others where a node is: what its owner said, else where it listens.

    A socket that listens everywhere is reached at the address that this machine has towards `there`.
    """

    async def announced() -> str | None:
        if told is not None:
            return told
        host, port = bound.getsockname()[:2]
        reached = await host_towards(there) if is_wildcard(host) else host
        return None if reached is None else join_address(reached, port)

    return announced
