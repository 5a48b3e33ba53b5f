"""One user's node: asks for a seat, takes part, closes its ledger, hands in its head.

What it keeps in its folder: `run.key` (mode 0600, durable before enrolment, unlinked when the run closes or expires),
`seat` (the roster and its number in it, for a restart), and its two ledgers. A node whose key is unlinked
has done its part and is not started again (`has_finished`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.hosts import user_host
from p2pdp.core.addresses import Address, Place
from p2pdp.core.draws import Sampler
from p2pdp.core.errors import P2pdpError, Refused, RunFailed, VerificationFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.spec import RunPart
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk, is_closed
from p2pdp.node.expiry import Expiry, refuse_expired
from p2pdp.node.handing_in import handed_in
from p2pdp.node.keys import durable_secret, write_durably
from p2pdp.node.shell import KIND_AT, HostShell
from p2pdp.node.waiting import Waiting
from p2pdp.node.whereabouts import Abroad, Whereabouts
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.enrolment import NO_ANSWER, RETRY_S, EnrolmentClient
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.transports.contract import Network, Origin
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import Kind

RUN_KEY_FILE: Final = "run.key"
SEAT_FILE: Final = "seat"
RETRY_MAX_S: Final = 30.0
QUEUED_ROUNDS: Final = 60


@dataclass(frozen=True)
class UserSettings:
    """What a node is started with; `prepare` gives the plan and the user's rows once it knows its number.

    `run` is what the spec says of the run, None before a spec was offered.
    With `abroad` peers say themselves where they are, and `where` is not asked.
    """

    folder: Path
    identity: Identity
    token: int
    secret: bytes
    bootstrap_public: bytes
    accept: Callable[[str], bytes]
    prepare: Callable[[Roster, Peer], tuple[RunPlan, Any]]
    network: Network
    bootstrap_place: Place | None
    where: Callable[[Roster, Peer], Place | None]
    sampler: Callable[[], Sampler]
    run: Callable[[], RunPart | None]
    power: bool = False
    share_skeleton: bool = False
    trace_wire: bool = False
    share: Callable[[Roster], Roster] = lambda roster: roster  # nodes of one process need it in memory once
    abroad: Abroad | None = None


def has_finished(folder: Path, run: RunPart | None) -> bool:
    """Whether a node did all of its part before: its ledger is closed, and the curator has its head.

    `run` is what the spec says of the run, None where the node has none yet.
    """
    if not (folder / SEAT_FILE).exists() or (folder / RUN_KEY_FILE).exists():
        return False
    if not is_closed(folder):
        if run is not None:
            refuse_expired(run, ())  # that is where its key went
        raise VerificationFailed(f"{folder / RUN_KEY_FILE}: is gone, and without it this node cannot go on")
    return True


class UserNode:
    """To be made within a running event loop."""

    def __init__(self, settings: UserSettings) -> None:
        self._settings = settings
        self._clock = Clock()
        self._disk = Disk(settings.folder, power=settings.power, trace_wire=settings.trace_wire)
        self._entropy = SystemEntropy()
        self._run_key = RunKey(durable_secret(settings.folder / RUN_KEY_FILE))
        self._shell = HostShell(
            self._disk, self._clock, self._document, lambda _output: None, self._ask_again, self._on_way,
            rests=settings.abroad is not None,
        )  # fmt: skip
        self._transport = settings.network.attach(self._shell, self._where)
        self._shell.transport = self._transport
        self._roster: Roster | None = None
        self._enrolment_client: EnrolmentClient | None = None
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refusal: P2pdpError | None = None
        self._whereabouts: Whereabouts | None = None
        self._teller: asyncio.Task[None] | None = None
        self._way_lost = False
        self._expiry = Expiry(self._clock.now_s, self._shell.fail)
        self._waiting = Waiting(_silently if settings.abroad is None else settings.abroad.say)

    @property
    def faults(self) -> dict[str, int]:
        """By kind, so far."""
        return {} if self._shell.host is None else self._shell.host.fault_counts

    async def run(self) -> None:
        """Until the ledger is closed and the curator has its head. May raise what refuses or stops it."""
        await self._settings.network.listen()
        try:
            self._watch_expiry()
            if self._shell.ended.done():
                await self._shell.ended  # its time was over before
            credentials = _stored_seat(self._settings.folder, self._settings.identity, self._run_key)
            if credentials is None:
                credentials = await self._enrol()
            self._begin(replace(credentials, roster=self._settings.share(credentials.roster)))
            await self._take_part()
            if self._shell.host is not None and self._shell.host.stopped:
                raise RunFailed("this node's disk was rolled back: its peers hold more than it remembers")
            self._add_faults()
            self._shell.write_totals(self._settings.folder)
            (self._settings.folder / RUN_KEY_FILE).unlink(missing_ok=True)
        except Expired:
            (self._settings.folder / RUN_KEY_FILE).unlink(missing_ok=True)
            raise
        finally:
            self._expiry.stop()
            if self._teller is not None:
                self._teller.cancel()
            self._settings.network.close()
            self._shell.stop()
            await self._transport.close()

    def _watch_expiry(self) -> None:
        run = self._settings.run()
        if run is not None:
            self._expiry.watch(run)

    def _where(self, peer: Peer) -> Place | None:
        if peer < 0:
            return self._settings.bootstrap_place
        if self._whereabouts is not None:
            text = self._whereabouts.where(peer)
            return None if text is None else self._settings.network.place(text)
        return None if self._roster is None else self._settings.where(self._roster, peer)

    async def _enrol(self) -> Credentials:
        settings = self._settings
        self._enrolment_client = EnrolmentClient(
            settings.identity,
            self._run_key,
            settings.token,
            settings.secret,
            settings.bootstrap_public,
            settings.accept,
            self._entropy,
        )
        retry_s, rounds = RETRY_S, 0
        while not self._answered.done():
            queued = settings.abroad is not None and self._enrolment_client.waiting_for == NO_ANSWER
            if not queued or rounds % QUEUED_ROUNDS == 0:  # bootstrap may be absent for hours: one request waits for it
                self._transport.send(BOOTSTRAP, self._enrolment_client.ask())
            rounds += 1
            futures = self._answered, self._shell.ended
            await asyncio.wait(futures, timeout=retry_s, return_when=asyncio.FIRST_COMPLETED)
            reason = self._enrolment_client.waiting_for
            self._waiting.note(self._no_answer() if reason == NO_ANSWER else reason, self._clock.now_s())
            if settings.abroad is None and reason != NO_ANSWER:  # thousands that ask each second would delay the answer
                retry_s = min(2 * retry_s, RETRY_MAX_S)
            if self._shell.ended.done():
                await self._shell.ended  # raises what went wrong meanwhile
        if self._refusal is not None:
            raise self._refusal
        if self._enrolment_client.refused is not None:
            raise Refused(f"bootstrap refused this node: {self._enrolment_client.refused}")
        credentials = self._enrolment_client.credentials
        assert credentials is not None
        _store_seat(settings.folder, credentials)
        self._enrolment_client = None
        return credentials

    def _ask_again(self, peer: Peer) -> None:
        """Bootstrap went away while it had our application: it may have come back without it."""
        if peer == BOOTSTRAP and self._enrolment_client is not None and not self._answered.done():
            self._enrolment_client.waiting_for = NO_ANSWER
            self._transport.send(BOOTSTRAP, self._enrolment_client.ask())

    def _no_answer(self) -> str:
        there = self._settings.bootstrap_place
        return f"waiting for bootstrap at {there}" if isinstance(there, Address) else "waiting for bootstrap"

    def _document(self, origin: Origin, frame: bytes) -> None:
        if self._whereabouts is not None and frame[KIND_AT : KIND_AT + 1] == bytes((Kind.ADDRESS,)):
            self._whereabouts.hear(frame)
            return
        if self._enrolment_client is None or self._answered.done():
            return
        try:
            reply = self._enrolment_client.frame(frame)
        except P2pdpError as error:  # the node's owner does not accept the spec
            self._refusal = error
            self._answered.set_result(None)
            return
        if self._enrolment_client.doubt is not None:
            self._refusal = Refused(
                f"who answers there is not the bootstrap of this token: {self._enrolment_client.doubt}"
            )
            self._answered.set_result(None)
        elif self._enrolment_client.credentials is not None or self._enrolment_client.refused is not None:
            self._answered.set_result(None)
        elif reply is not None:
            self._watch_expiry()
            if not self._shell.ended.done():
                self._transport.answer(origin, reply)

    def _begin(self, credentials: Credentials) -> None:
        abroad = self._settings.abroad
        if abroad is not None:
            abroad.admit(credentials)
        self._roster = credentials.roster
        self._settings.network.serve(credentials.me, self._transport)
        run, rows = self._settings.prepare(credentials.roster, credentials.me)
        if abroad is not None and run.spec.run.durability == "power":
            self._disk.make_durable()  # the spec came from bootstrap
        journal = Journal(self._disk.stored.pop(VIEW), self._disk.stored.pop(PRIVATE))
        skeleton = handed_in(self._disk.read, run, credentials) if self._settings.share_skeleton else None
        host = user_host(
            run, credentials, journal, self._settings.sampler(), self._entropy, rows, skeleton, self._disk.tap
        )
        self._shell.begin(host)
        if abroad is not None:
            transport = self._transport
            self._whereabouts = Whereabouts(
                credentials, abroad.own_address, lambda frame: transport.send(BOOTSTRAP, frame)
            )
            self._teller = asyncio.get_running_loop().create_task(self._whereabouts.tell(), name="whereabouts")
            self._teller.add_done_callback(self._teller_ended)

    def _teller_ended(self, teller: asyncio.Task[None]) -> None:
        error = None if teller.cancelled() else teller.exception()
        if error is not None:
            self._shell.fail(error)

    def _on_way(self, peer: Peer, there: bool) -> None:
        if peer == BOOTSTRAP and self._whereabouts is not None:
            self._way_lost = not there
            self._whereabouts.again()

    async def _take_part(self) -> None:
        """Until the host is done; among machines it is said meanwhile when bootstrap is away."""
        abroad, ended, host = self._settings.abroad, self._shell.ended, self._shell.host
        closed_s: float | None = None
        while abroad is not None and host is not None and not ended.done():
            await asyncio.wait([ended], timeout=RETRY_S)
            now_s = self._clock.now_s()
            away = self._way_lost or not host.heard(BOOTSTRAP)
            self._waiting.note(self._no_answer() if away and not ended.done() else None, now_s)
            closed_s = now_s if host.closed and closed_s is None else closed_s
            if not ended.done() and closed_s is not None and now_s >= closed_s + abroad.give_up_s:
                raise RunFailed(
                    "this node's ledger is closed, and nobody takes its head: the run may be over without it; "
                    "once bootstrap is there again, the same command goes on"
                )
        await ended

    def _add_faults(self) -> None:
        host = self._shell.host
        told = {} if self._whereabouts is None else self._whereabouts.faults
        for kind, count in (*told.items(), *self._settings.network.faults.items()):
            if host is not None:
                host.fault_counts[kind] = host.fault_counts.get(kind, 0) + count


def _silently(_text: str) -> None:
    pass


def _store_seat(folder: Path, credentials: Credentials) -> None:
    neighbours = None if credentials.neighbours is None else list(credentials.neighbours)
    write_durably(folder / SEAT_FILE, pack([credentials.me, neighbours, credentials.roster.to_bytes()]))


def _stored_seat(folder: Path, identity: Identity, run_key: RunKey) -> Credentials | None:
    path = folder / SEAT_FILE
    if not path.exists():
        return None
    try:
        me, neighbours, packed = unpack(path.read_bytes())
        roster = Roster.from_bytes(packed)
    except (CodecError, RosterError, TypeError, ValueError) as error:
        raise VerificationFailed(f"{path}: is damaged") from error
    return Credentials(me, roster, identity, run_key, None if neighbours is None else tuple(neighbours))
