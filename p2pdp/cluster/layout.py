"""The assignment of peers to the processes of a local run, and the sockets on which peers listen.

A process has a number. `ROLES` is that of bootstrap and curator, and of everybody where all share one process. Its
socket goes by the first of its slots.

Sockets are opened before any process starts. So a dial succeeds from the beginning, whoever is not up yet, and a
process that is restarted is where it was. They are held as plain descriptors: a child drops those of the others with a
call or two, and no object is left that would close a descriptor which has been reused since.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from p2pdp.core.addresses import Address
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.spec import Spec
from p2pdp.transports.contract import ROLES
from p2pdp.transports.registry import transport_kind
from p2pdp.transports.tcp.kind import FILES_SPARE, NODE_FILES
from p2pdp.transports.tcp.switchboard import BACKLOG


@dataclass(frozen=True)
class Packing:
    """The packing of users into processes, which are forked from the launcher or `spawn`ed as fresh interpreters.

    With `trace_wire` every peer logs what it receives (`wire.jsonl`).
    """

    nodes_per_process: int = 1
    spawn: bool = False
    trace_wire: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.nodes_per_process, int):  # callers from Python may give anything
            raise UsageError(f"--nodes-per-process {self.nodes_per_process!r}: must be a whole number")
        if self.nodes_per_process < 1:
            raise UsageError(f"--nodes-per-process {self.nodes_per_process}: must be at least 1")


ONE_EACH: Final = Packing()


@dataclass(frozen=True)
class Layout:
    """`slots` are the users that are to take part; their numbers in the run may differ (`peers.places`)."""

    slots: int
    nodes_per_process: int = 1
    in_one_process: bool = False

    @property
    def processes(self) -> tuple[int, ...]:
        """Return all processes, first the one that the others wait for."""
        count = 0 if self.in_one_process else -(-self.slots // self.nodes_per_process)
        return (ROLES, *range(count))

    def users(self, process: int) -> range:
        if self.in_one_process:
            return range(self.slots)
        if process == ROLES:
            return range(0)
        first = process * self.nodes_per_process
        return range(first, min(first + self.nodes_per_process, self.slots))

    def slots_of(self, process: int) -> Sequence[int]:
        """Return all slots of a process: those of users, and `ROLES`."""
        return (ROLES, *self.users(process)) if process == ROLES else self.users(process)

    def first_slot(self, process: int) -> int:
        return self.slots_of(process)[0]

    def name(self, process: int) -> str:
        users = self.users(process)
        if self.in_one_process:
            return "the process of all nodes"
        if process == ROLES:
            return "bootstrap and curator"
        return f"node {users[0]}" if len(users) == 1 else f"the process of nodes {users[0]} to {users[-1]}"


def layout_of(spec: Spec, packing: Packing) -> Layout:
    kind = transport_kind(spec.run.transport)
    if kind.in_one_process and packing.nodes_per_process > 1:
        raise UsageError(
            f'--nodes-per-process: with [run] transport = "{kind.name}" all nodes are in one process anyway'
        )
    return Layout(spec.run.nodes, packing.nodes_per_process, kind.in_one_process)


class Sockets:
    """A listening socket for each of these slots."""

    def __init__(self, slots: Iterable[int]) -> None:
        self.descriptors: dict[int, int] = {}
        self.addresses: dict[int, Address] = {}
        try:
            for slot in slots:
                bound = _bound()
                self.addresses[slot] = Address(*bound.getsockname()[:2])
                self.descriptors[slot] = bound.detach()
            self.blocks = _blocks(self.descriptors.values())
        except BaseException:
            self.close()
            raise

    def keep_only(self, mine: Collection[int]) -> None:
        """Drop the sockets of the others, in a forked child: with a few calls, however many they are."""
        for first, end in self.blocks:
            for kept in sorted(descriptor for descriptor in mine if first <= descriptor < end):
                os.closerange(first, kept)
                first = kept + 1  # noqa: PLW2901
            os.closerange(first, end)

    def close(self) -> None:
        for descriptor in self.descriptors.values():
            os.close(descriptor)
        self.descriptors = {}


def _blocks(descriptors: Iterable[int]) -> list[tuple[int, int]]:
    """Return where blocks of consecutive numbers begin and end."""
    blocks: list[tuple[int, int]] = []
    for descriptor in sorted(descriptors):
        if blocks and blocks[-1][1] == descriptor:
            blocks[-1] = blocks[-1][0], descriptor + 1
        else:
            blocks.append((descriptor, descriptor + 1))
    return blocks


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
    """Raise the limit of open files as far as is needed and the system allows.

    The launcher holds a socket a process, the roles two connections to each and room for twice as many strangers, and a
    process of many nodes what these need.
    """
    processes = -(-users // nodes_per_process)
    count = max(4 * processes, NODE_FILES * min(nodes_per_process, users)) + FILES_SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
