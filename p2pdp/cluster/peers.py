"""Runs the peers assigned to one process of a local run, and ends them together.

Users in one process run in one event loop, each with its own keys, sampler, disk and network. One that fails
ends them all, and all are started again; one that is refused, because the others began without it, is reported
and leaves the rest alone. Where a transport keeps all in one process, bootstrap and curator are in it too.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.jobs import Job
from p2pdp.cluster.layout import Layout
from p2pdp.cluster.processes import Main, give_memory_back, send_event
from p2pdp.core.addresses import Address, Place
from p2pdp.core.endings import STOPPED, Stopped, why_stopped
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer, is_user, peer_name
from p2pdp.core.messages import BLOCKED, EXCLUDED, RESULT
from p2pdp.core.rows import ROWS_MAX
from p2pdp.core.step import Output
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import ROSTER_FILE, write_json
from p2pdp.files.keys import PUBLIC_FILE, SECRET_FILE
from p2pdp.node import roles, user
from p2pdp.node.disk import durable_secret, write_durably
from p2pdp.node.roles import RolesNode, RolesSettings
from p2pdp.node.user import UserNode, UserSettings
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.services.enrolment import Quorum
from p2pdp.transports.contract import ROLES, LocalNetworks, LocalProcess
from p2pdp.transports.registry import transport_kind

NOWHERE: Final = -2  # no process here is that user
PROGRESS_S: Final = 0.1
COLLECT_TOGETHER: Final = 100  # users after whose objects the collector comes, at most


def places(job: Job, roster: Roster) -> list[int]:
    """Return the slot of each user; numbers move up where some nodes stayed away."""
    slots = {}
    for slot in range(job.slots):
        public = node_folder(job, slot) / PUBLIC_FILE
        if public.is_file():
            slots[public.read_text().strip()] = slot
    return [slots.get(entry.identity.hex(), NOWHERE) for entry in roster.entries]


def node_folder(job: Job, slot: int) -> Path:
    return job.folder / "nodes" / f"{slot:04d}"


class _Places:
    """The places of users, from the slots that the roster gives them once it is known."""

    def __init__(self, job: Job, where: Callable[[int], Place | None]) -> None:
        self._job = job
        self._where = where
        self._places: list[int] = []

    def slot(self, roster: Roster, user: Peer) -> int:
        if roster.n == self._job.slots:
            return user
        if not self._places:
            self._places = places(self._job, roster)
        return self._places[user]

    def where(self, roster: Roster, user: Peer) -> Place | None:
        slot = self.slot(roster, user)
        return None if slot == NOWHERE else self._where(slot)


def user_main(
    job: Job,
    slot: int,
    networks: LocalNetworks,
    on_seat: Callable[[], None] = lambda: None,
    share: Callable[[Roster], Roster] = lambda roster: roster,
) -> Main:
    network = networks.network(slot)

    def prepare(roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        on_seat()
        run = plan_of_facts(job.spec, dict(roster.facts))  # with what was signed of the graph
        return run, job.own_rows(roster.n, me, slot)

    async def main() -> None:
        folder = node_folder(job, slot)
        if user.has_finished(folder, job.spec.run):
            return
        power = job.spec.run.durability == "power"
        identity = Identity(durable_secret(folder / SECRET_FILE, power=power))
        if not (folder / PUBLIC_FILE).exists():
            write_durably(folder / PUBLIC_FILE, identity.public.hex().encode() + b"\n", power=power)
        node = UserNode(
            UserSettings(
                folder=folder,
                identity=identity,
                token=slot,
                secret=job.secrets[slot],
                bootstrap_public=job.bootstrap_public,
                accept=lambda _text: job.digest,
                prepare=prepare,
                network=network,
                bootstrap_place=networks.where(ROLES),
                where=_Places(job, networks.where).where,
                sampler=job.sampler,
                run=lambda: job.spec.run,
                power=power,
                trace_wire=job.trace_wire,
                share=share,
                rows=lambda: len(job.rows(job.slots, slot)) if job.states_rows else None,
            )
        )
        await node.run()

    return main


def roles_main(job: Job, networks: LocalNetworks, pipe: int) -> Main:
    network, where = networks.network(ROLES), _Places(job, networks.where)
    seated: list[Roster] = []

    def on_roster(roster: Roster) -> None:
        seated.append(roster)
        write_json(job.folder / ROSTER_FILE, roster.to_json())
        send_event(pipe, "roster", n=roster.n)

    told_s = 0.0

    def on_enrolled(count: int) -> None:
        nonlocal told_s
        now_s = asyncio.get_running_loop().time()
        if now_s >= told_s + PROGRESS_S or count == job.slots:
            told_s = now_s
            send_event(pipe, "enrolling", count=count)

    def on_output(_peer: Peer, output: Output) -> None:
        if output.type == RESULT:
            send_event(pipe, "published")
        elif output.type == STOPPED:
            send_event(pipe, "stopped", reason=why_stopped(Stopped(*output.fields).reason))
        elif output.type in (EXCLUDED, BLOCKED):
            who, *_ = output.fields
            slot = where.slot(seated[0], who) if is_user(who) else NOWHERE
            send_event(pipe, output.type, user=peer_name(who), slot=slot)

    async def main() -> None:
        run_spec = job.spec.run
        curator = job.folder / "curator"
        if roles.have_finished(curator):
            return
        node = RolesNode(
            RolesSettings(
                folder=curator,
                identity=Identity(durable_secret(curator / "bootstrap" / SECRET_FILE)),
                curator_identity=Identity(durable_secret(curator / SECRET_FILE)),
                run_id=job.run_id,
                spec_text=job.text,
                spec_digest=job.digest,
                run=run_spec,
                secrets=job.secrets,
                quorum=Quorum(run_spec.nodes, run_spec.min_nodes or run_spec.nodes, run_spec.enrol_timeout_s),
                prepare=job.plan,
                network=network,
                where=where.where,
                sampler=job.sampler,
                on_roster=on_roster,
                on_output=on_output,
                on_enrolled=on_enrolled,
                power=run_spec.durability == "power",
                trace_wire=job.trace_wire,
                rows_max=ROWS_MAX if job.states_rows else None,
            )
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, node.nobody_left.set)
        await node.run()

    return main


SEATED: Final = "seated"  # an event: a user has its seat
REFUSED: Final = "refused"  # an event: a user will never have one


def process_main(
    job: Job,
    layout: Layout,
    process: int,
    listening: Sequence[int],
    addresses: Mapping[int, Address],
    pipe: int,
    provided: Mapping[str, Any] | None = None,
) -> Main:
    """Return the main function of a process, from its socket, if it has one, and all addresses."""
    kind, users = transport_kind(job.spec.run.transport), layout.users(process)
    sockets = dict(zip((layout.first_slot(process),), listening, strict=True)) if kind.opens_sockets else {}
    together = layout.nodes_per_process
    networks = kind.local(LocalProcess(job.spec, job.run_id, users, sockets, addresses, provided, together))
    roles = roles_main(job, networks, pipe) if process == ROLES else None
    share, seated = _once(), _seats(users, pipe)
    mains = {slot: user_main(job, slot, networks, partial(seated, slot), share) for slot in users}
    if roles is None:
        return _user_group(mains, pipe)
    return _everybody(roles, mains, pipe) if mains else roles


def _seats(users: Collection[int], pipe: int) -> Callable[[int], None]:
    """Return a function that tells of each user that has its seat; with the last one, enrolment is over here."""
    waiting = set(users)

    def seated(slot: int) -> None:
        waiting.discard(slot)
        if not waiting:
            if len(users) > 1:
                gc.freeze()  # what they have now they keep: the collector would walk over all of it again and again
            give_memory_back()
        send_event(pipe, SEATED, slot=slot)

    return seated


def _once() -> Callable[[Roster], Roster]:
    """Return a function that keeps rosters with everybody's entries in memory once: each holds 128 bytes a user."""
    known: dict[bytes, Roster] = {}

    def share(roster: Roster) -> Roster:
        return known.setdefault(roster.to_bytes(), roster) if roster.entries.users is None else roster

    return share


def _user_group(users: dict[int, Main], pipe: int) -> Main:
    async def main() -> None:
        refused: list[Refused] = []

        async def one(slot: int, user: Main) -> None:
            try:
                await user()
            except Refused as error:
                send_event(pipe, REFUSED, slot=slot, text=str(error))
                refused.append(error)

        with _collected_together(len(users)):
            await _together(*(partial(one, slot, user) for slot, user in users.items()))
        if refused:
            raise refused[0]

    return main


@contextmanager
def _collected_together(users: int) -> Iterator[None]:
    """Let the collector of cycles come as often for each of so many users as where one is alone."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(before[0] * min(users, COLLECT_TOGETHER), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:  # what a launcher froze is shared, and stays so
            gc.unfreeze()


def _everybody(roles_alone: Main, users: dict[int, Main], pipe: int) -> Main:
    async def all_users() -> None:
        with suppress(Refused):  # it has been told of, and the others go on
            await _user_group(users, pipe)()
        signal.raise_signal(signal.SIGUSR1)  # the roles need not wait for anybody any more

    async def main() -> None:
        others = asyncio.ensure_future(all_users())
        roles = asyncio.ensure_future(roles_alone())
        try:
            await asyncio.wait((others, roles), return_when=asyncio.FIRST_COMPLETED)
            if not roles.done():
                others.result()
            await roles  # who is left then was excluded, or has nobody to talk to any more
        finally:
            await _end((others, roles))

    return main


async def _together(*mains: Main) -> None:
    """Run all to their ends; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(main()) for main in mains]
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
