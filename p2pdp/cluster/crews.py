"""Runs the peers assigned to one process of a local run, and ends them together.

Users in one process run in one event loop, each with its own keys, sampler, disk and network. One that fails
ends them all, and all are started again; one that is refused, because the others began without it, is reported
and leaves the rest alone. Where a transport keeps all in one process, bootstrap and curator are in it too.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from p2pdp.cluster.bodies import roles_body, user_body
from p2pdp.cluster.children import Body, give_memory_back
from p2pdp.cluster.events import send_event
from p2pdp.cluster.jobs import Job
from p2pdp.cluster.layout import Layout
from p2pdp.core.addresses import Address
from p2pdp.core.errors import Refused
from p2pdp.crypto.roster import Roster
from p2pdp.transports.contract import ROLES, LocalProcess
from p2pdp.transports.registry import transport_kind

SEATED: Final = "seated"  # an event: a user has its seat
REFUSED: Final = "refused"  # an event: a user will never have one


def crew_body(
    job: Job,
    layout: Layout,
    process: int,
    listening: Sequence[int],
    addresses: Mapping[int, Address],
    pipe: int,
    provided: Mapping[str, Any] | None = None,
) -> Body:
    """Return what a process does. It gets the sockets of its slots, if their transport has any, and all addresses."""
    kind, users = transport_kind(job.spec.run.transport), layout.users(process)
    sockets = dict(zip(layout.slots_of(process), listening, strict=True)) if kind.opens_sockets else {}
    networks = kind.local(LocalProcess(job.spec, job.run_id, users, sockets, addresses, provided))
    roles = roles_body(job, networks, pipe) if process == ROLES else None
    share = _once()
    bodies = {slot: user_body(job, slot, networks, partial(_seated, slot, pipe), share) for slot in users}
    if roles is None:
        return _crew(bodies, pipe)
    return _everybody(roles, bodies, pipe) if bodies else roles


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


def _everybody(roles_alone: Body, users: dict[int, Body], pipe: int) -> Body:
    async def all_users() -> None:
        with suppress(Refused):  # it has been told of, and the others go on
            await _crew(users, pipe)()
        signal.raise_signal(signal.SIGUSR1)  # the roles need not wait for anybody any more

    async def body() -> None:
        others = asyncio.ensure_future(all_users())
        roles = asyncio.ensure_future(roles_alone())
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
