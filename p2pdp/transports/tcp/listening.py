"""The socket that a node listens on where its owner said, and the address by which this machine reaches another."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable

from p2pdp.core.addresses import Address, is_wildcard, join_address
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.transports.tcp.transport import BACKLOG


def listen_at(place: Address, what: str) -> socket.socket:
    """A listening socket; `what` names the option or key that holds the place."""
    host, port = place
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror:
        raise UsageError(f"{what} {join_address(host, port)}: no machine is known by this name") from None
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
    """The address of this machine from which the other is reached; None while there is no way.

    A datagram socket that is connected sends nothing: the system just chooses the way.
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
    """What others are told of a node: what its owner said, else where it listens.

    A socket that listens everywhere is reached at the address that this machine has towards `there`.
    """

    async def announced() -> str | None:
        if told is not None:
            return told
        host, port = bound.getsockname()[:2]
        reached = await host_towards(there) if is_wildcard(host) else host
        return None if reached is None else join_address(reached, port)

    return announced
