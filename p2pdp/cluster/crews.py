"""Who is in a process of a local run, and how those in one process end together.

Users in one process run in one event loop, each with its own keys, sampler, disk and socket. One that fails
ends them all, and all are started again; one that is refused, because the others began without it, is told of
and leaves the rest alone. Where frames stay in memory, bootstrap and curator are in that one process too.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from p2pdp.cluster.bodies import roles_body, user_body
from p2pdp.cluster.broker import OwnBroker
from p2pdp.cluster.children import Body, give_memory_back
from p2pdp.cluster.events import send_event
from p2pdp.cluster.jobs import Job
from p2pdp.cluster.layout import ROLES, Layout
from p2pdp.cluster.sockets import connections_of_node, connections_of_roles
from p2pdp.cluster.stations import networks_of
from p2pdp.core.errors import Refused
from p2pdp.core.stations import ROLES_STATION, user_station
from p2pdp.crypto.roster import Roster
from p2pdp.transports.memory import Hub
from p2pdp.transports.networks import MemoryNetwork, TcpNetwork
from p2pdp.transports.tcp import STRANGERS_MAX, Address
from p2pdp.transports.ways import WAYS_MAX

SEATED: Final = "seated"  # an event: a user has its seat
REFUSED: Final = "refused"  # an event: a user will never have one


def crew_body(
    job: Job,
    layout: Layout,
    process: int,
    listening: Sequence[int],
    addresses: Sequence[Address],
    pipe: int,
    broker: OwnBroker | None = None,
) -> Body:
    """What a process does. It gets the descriptors its peers listen on, and the addresses of all."""
    if layout.in_memory:
        return _everybody(job, pipe)
    if layout.at_broker:
        return _at_broker(job, layout, process, pipe, broker)
    if process == ROLES:
        network = TcpNetwork(socket.socket(fileno=listening[0]), *connections_of_roles(job.slots))
        return roles_body(job, network, addresses[1:], pipe)
    users = layout.users(process)
    connections = connections_of_node(len(users))
    share = _once()
    return _crew(
        {
            slot: user_body(
                job,
                slot,
                TcpNetwork(socket.socket(fileno=descriptor), connections),
                addresses[0],
                addresses[1:],
                partial(_seated, slot, pipe),
                share,
            )
            for slot, descriptor in zip(users, listening, strict=True)
        },
        pipe,
    )


def _at_broker(job: Job, layout: Layout, process: int, pipe: int, broker: OwnBroker | None) -> Body:
    """Where they are is what their stations are called."""
    networks = networks_of(job.spec, job.run_id, broker)
    addresses = [(user_station(slot), 0) for slot in range(job.slots)]
    if process == ROLES:
        most = max(WAYS_MAX, job.slots)
        return roles_body(job, networks(ROLES_STATION, most, job.slots + STRANGERS_MAX), addresses, pipe)
    share = _once()
    users = {
        slot: user_body(
            job,
            slot,
            networks(user_station(slot), WAYS_MAX, STRANGERS_MAX),
            None,
            addresses,
            partial(_seated, slot, pipe),
            share,
        )
        for slot in layout.users(process)
    }
    return _crew(users, pipe)


def _seated(slot: int, pipe: int) -> None:
    give_memory_back()
    send_event(pipe, SEATED, slot=slot)


def _once() -> Callable[[Roster], Roster]:
    """Rosters that are the same become one: each holds 128 bytes a user."""
    known: dict[bytes, Roster] = {}
    return lambda roster: known.setdefault(roster.digest + roster.signature, roster)


def _crew(users: dict[int, Body], pipe: int) -> Body:
    async def body() -> None:
        refused: list[Refused] = []

        async def one(slot: int, user: Body) -> None:
            try:
                await user()
            except Refused as error:
                send_event(pipe, REFUSED, slot=slot, text=str(error))
                refused.append(error)

        await _together(*(partial(one, slot, user) for slot, user in users.items()))
        if refused:
            raise refused[0]

    return body


def _everybody(job: Job, pipe: int) -> Body:
    hub, share = Hub(), _once()
    users = {
        slot: user_body(job, slot, MemoryNetwork(hub), None, (), partial(_seated, slot, pipe), share)
        for slot in range(job.slots)
    }

    async def all_users() -> None:
        with suppress(Refused):  # it has been told of, and the others go on
            await _crew(users, pipe)()
        signal.raise_signal(signal.SIGUSR1)  # the roles need not wait for anybody any more

    async def body() -> None:
        others = asyncio.ensure_future(all_users())
        roles = asyncio.ensure_future(roles_body(job, MemoryNetwork(hub), (), pipe)())
        try:
            await asyncio.wait((others, roles), return_when=asyncio.FIRST_COMPLETED)
            if not roles.done():
                others.result()
            await roles  # who is left then was excluded, or has nobody to talk to any more
        finally:
            await _end((others, roles))

    return body


async def _together(*bodies: Body) -> None:
    """Runs all to their ends; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(body()) for body in bodies]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await _end(tasks)


async def _end(tasks: Iterable[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
