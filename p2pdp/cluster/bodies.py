"""What a user, and what bootstrap and curator do in a local run, in whichever process they are."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.children import Body
from p2pdp.cluster.events import send_event
from p2pdp.cluster.jobs import Job
from p2pdp.core.addresses import Place
from p2pdp.core.ids import Peer, is_user, peer_name
from p2pdp.core.messages import BLOCKED, EXCLUDED, RESULT
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
from p2pdp.transports.contract import ROLES, LocalNetworks

NOWHERE: Final = -2  # no process here is that user
PROGRESS_S: Final = 0.1


def places(job: Job, roster: Roster) -> list[int]:
    """Which slot each user has, where some stayed away and the numbers moved up."""
    slots = {}
    for slot in range(job.slots):
        public = node_folder(job, slot) / PUBLIC_FILE
        if public.is_file():
            slots[public.read_text().strip()] = slot
    return [slots.get(entry.identity.hex(), NOWHERE) for entry in roster.entries]


def node_folder(job: Job, slot: int) -> Path:
    return job.folder / "nodes" / f"{slot:04d}"


class _Map:
    """Where users are; made once the roster is known, which never changes."""

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


def user_body(
    job: Job,
    slot: int,
    networks: LocalNetworks,
    on_seat: Callable[[], None] = lambda: None,
    share: Callable[[Roster], Roster] = lambda roster: roster,
) -> Body:
    network = networks.network(slot)

    def prepare(roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        on_seat()
        return plan_of_facts(job.spec, dict(roster.facts)), job.rows(roster.n, me)  # with what was signed of the graph

    async def body() -> None:
        folder = node_folder(job, slot)
        if user.has_finished(folder, job.spec.run):
            return
        identity = Identity(durable_secret(folder / SECRET_FILE))
        if not (folder / PUBLIC_FILE).exists():
            write_durably(folder / PUBLIC_FILE, identity.public.hex().encode() + b"\n")
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
                where=_Map(job, networks.where).where,
                sampler=job.sampler,
                run=lambda: job.spec.run,
                power=job.spec.run.durability == "power",
                trace_wire=job.trace_wire,
                share=share,
            )
        )
        await node.run()

    return body


def roles_body(job: Job, networks: LocalNetworks, pipe: int) -> Body:
    network, where = networks.network(ROLES), _Map(job, networks.where)
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
        elif output.type in (EXCLUDED, BLOCKED):
            who, *_ = output.fields
            slot = where.slot(seated[0], who) if is_user(who) else NOWHERE
            send_event(pipe, output.type, user=peer_name(who), slot=slot)

    async def body() -> None:
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
            )
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, node.nobody_left.set)
        await node.run()

    return body
