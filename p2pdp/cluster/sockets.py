"""The sockets that the peers of a local run listen on, all opened before anybody is started.

So a dial succeeds from the beginning, whoever is not up yet, and a process that is started again is where it
was. They are held as plain descriptors: a child drops those of the others with a call or two, and no object is
left that would close a descriptor which is somebody else's by then.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Collection, Iterable
from typing import Final

from p2pdp.core.addresses import Address
from p2pdp.core.errors import NotReady
from p2pdp.transports.tcp.kind import FILES_SPARE, NODE_FILES
from p2pdp.transports.tcp.transport import BACKLOG

LINKS_WANTED: Final = 64  # connections of each node in a process of many; more if the system allows it


class Sockets:
    """One for each of the slots."""

    def __init__(self, slots: Iterable[int]) -> None:
        self.descriptors: dict[int, int] = {}
        self.addresses: dict[int, Address] = {}
        try:
            for slot in slots:
                bound = _bound()
                self.addresses[slot] = Address(*bound.getsockname()[:2])
                self.descriptors[slot] = bound.detach()
        except BaseException:
            self.close()
            raise

    def keep_only(self, mine: Collection[int]) -> None:
        """In a forked child: drops the sockets of the others."""
        kept = set(mine)
        first: int | None = None
        last = -1
        for descriptor in sorted(self.descriptors.values()):
            if descriptor in kept:
                continue
            if first is not None and descriptor != last + 1:
                os.closerange(first, last + 1)
                first = None
            first, last = descriptor if first is None else first, descriptor
        if first is not None:
            os.closerange(first, last + 1)

    def close(self) -> None:
        for descriptor in self.descriptors.values():
            os.close(descriptor)
        self.descriptors = {}


def _bound() -> socket.socket:
    try:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise NotReady(f"no further socket can be opened: {error.strerror}; raise the limit of open files") from None
    try:
        bound.bind(("127.0.0.1", 0))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise NotReady(f"no port on the loopback: {error.strerror}") from None
    return bound


def allow_open_files(users: int, nodes_per_process: int) -> None:
    """As many as the system lets us have, if the usual limit is too low.

    The launcher holds a socket a user, the roles up to two connections to each, and a process of many nodes
    what these need.
    """
    count = max(3 * users, nodes_per_process * (NODE_FILES + LINKS_WANTED)) + FILES_SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
