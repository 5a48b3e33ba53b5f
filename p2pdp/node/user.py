"""One user's node: enrols, takes part, closes its ledger, hands in its head.

It keeps in its folder: `run.key` (mode 0600, durable before enrolment, unlinked when the run closes or expires), `seat`
(for a restart), and its two ledgers. Without its key it has done its part and is not started again (`has_finished`).
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
from p2pdp.core.endings import SetBack
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, VerificationFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.spec import RunPart
from p2pdp.crypto.enrolment import BAD_ENROLMENT, SEAT, Answer, EnrolmentError, check_seat
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, RosterError, sign_entry
from p2pdp.crypto.sealed_skeleton import seal_skeleton
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import to_skeleton
from p2pdp.node.addresses import AddressExchange, RemotePeersSettings
from p2pdp.node.ahead import AheadSampler
from p2pdp.node.clock import Clock, Expiry, LoopClock, refuse_expired
from p2pdp.node.disk import Disk, durable_secret, is_closed, write_durably
from p2pdp.node.shell import KIND_AT, HostShell
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.enrolment import NO_ANSWER, RETRY_MAX_S, RETRY_S, EnrolmentClient, first_wait_s
from p2pdp.peer.link import STOPPED
from p2pdp.protocols.run_plan import RunPlan, skeleton_size
from p2pdp.transports.contract import Network, Origin
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import Kind

RUN_KEY_FILE: Final = "run.key"
SEAT_FILE: Final = "seat"
QUEUED_ROUNDS: Final = 60
NOTE_S: Final = 3.0


@dataclass(frozen=True)
class UserSettings:
    """The settings of a node; `prepare` returns the plan and the user's rows once the node knows its number.

    `run` returns the spec's run section, None before a spec was offered.
    With `remote` peers announce their addresses themselves, and `where` is not asked.
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
    live_min: int = 0  # the node's owner asks for so many users to the end
    share: Callable[[Roster], Roster] = lambda roster: roster  # nodes of one process need it in memory once
    remote: RemotePeersSettings | None = None
    rows: Callable[[], int | None] = lambda: None  # how many rows it states, once it has accepted a spec that asks


def has_finished(folder: Path, run: RunPart | None) -> bool:
    """Return whether a node did all of its part before: its ledger is closed, and the curator has its head.

    `run` is the spec's run section, None where the node has none yet.
    """
    if not (folder / SEAT_FILE).exists() or (folder / RUN_KEY_FILE).exists():
        return False
    if not is_closed(folder):
        if run is not None:
            refuse_expired(run, ())  # that is where its key went
        raise VerificationFailed(
            f"{folder / RUN_KEY_FILE}: is gone, or the end of {folder / VIEW}.ledger is, and without the key this node "
            "cannot go on: put it back as it was, or leave the run without this node"
        )
    return True


class UserNode:
    """Make it within a running event loop."""

    def __init__(self, settings: UserSettings) -> None:
        self._settings = settings
        self._clock = LoopClock.of_loop()
        self._sampler: AheadSampler | None = None  # which one the run decides, that a node knows once it has accepted
        self._disk = Disk(settings.folder, power=settings.power, trace_wire=settings.trace_wire)
        self._entropy = SystemEntropy()
        self._run_key = RunKey(durable_secret(settings.folder / RUN_KEY_FILE, power=_lasts(settings)))
        self._shell = HostShell(
            self._disk, self._clock, self._document, lambda _output: None, self._ask_again, self._on_connection,
        )  # fmt: skip
        self._transport = settings.network.attach(self._shell, self._where)
        self._shell.transport = self._transport
        self._roster: Roster | None = None
        self._enrolment_client: EnrolmentClient | None = None
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refusal: P2pdpError | None = None
        self._addresses: AddressExchange | None = None
        self._announcer: asyncio.Task[None] | None = None
        self._connection_lost = False
        self._expiry = Expiry(Clock().now_s, self._shell.fail)
        self._waiting = Waiting((lambda _text: None) if settings.remote is None else settings.remote.say)

    @property
    def faults(self) -> dict[str, int]:
        """Fault counts by kind since this process started."""
        if self._shell.host is not None:
            return self._shell.host.fault_counts
        refused = 0 if self._enrolment_client is None else self._enrolment_client.fault_count
        return {BAD_ENROLMENT: refused} if refused else {}

    @property
    def learned(self) -> Any:
        """Return how far this node's own model is (`Host.learned`)."""
        return None if self._shell.host is None else self._shell.host.learned

    async def run(self) -> None:
        """Run until the ledger is closed and the curator has its head; raise what refuses or stops it."""
        await self._settings.network.listen()
        try:
            self._watch_expiry()
            if self._shell.ended.done():
                await self._shell.ended  # its time was over before
            credentials = _stored_seat(self._settings, self._run_key)
            if credentials is None:
                credentials = await self._enrol()
            self._begin(replace(credentials, roster=self._settings.share(credentials.roster)))
            await self._take_part()
            if self._shell.host is not None and self._shell.host.stopped:
                raise SetBack(f"this node cannot go on: {STOPPED}")
            self._add_faults()
            self._shell.write_totals(self._settings.folder)
            (self._settings.folder / RUN_KEY_FILE).unlink(missing_ok=True)
        except Expired:
            (self._settings.folder / RUN_KEY_FILE).unlink(missing_ok=True)
            self._disk.shelf.clear()
            raise
        except VerificationFailed as error:
            raise _in_folder(self._settings.folder, error) from None
        finally:
            self._expiry.stop()
            if self._announcer is not None:
                self._announcer.cancel()
            self._settings.network.close()
            self._shell.stop()
            if self._sampler is not None:
                self._sampler.close()
            await self._transport.close()

    def _sampled(self) -> AheadSampler:
        if self._sampler is None:
            self._sampler = AheadSampler(self._settings.sampler())
        return self._sampler

    def _watch_expiry(self) -> None:
        run = self._settings.run()
        if run is not None:
            self._expiry.watch(run)

    def _where(self, peer: Peer) -> Place | None:
        if peer < 0:
            return self._settings.bootstrap_place
        if self._addresses is not None:
            text = self._addresses.where(peer)
            return None if text is None else self._settings.network.place(text)
        return None if self._roster is None else self._settings.where(self._roster, peer)

    async def _enrol(self) -> Credentials:
        settings = self._settings
        client = self._enrolment_client = EnrolmentClient(
            settings.identity,
            self._run_key,
            settings.token,
            settings.secret,
            settings.bootstrap_public,
            settings.accept,
            self._entropy,
            settings.rows,
        )
        retry_s, rounds = first_wait_s(settings.run() if settings.remote is None else None), 0
        while not self._answered.done():
            queued = settings.remote is not None and client.waiting_for == NO_ANSWER
            if not queued or rounds % QUEUED_ROUNDS == 0:  # bootstrap may be absent for hours: one request waits for it
                self._transport.send(BOOTSTRAP, client.ask())
            rounds += 1
            futures = self._answered, self._shell.ended
            await asyncio.wait(futures, timeout=retry_s, return_when=asyncio.FIRST_COMPLETED)
            self._waiting.note(client.waiting.replace(NO_ANSWER, self._no_answer()), self._clock.now_s())
            if settings.remote is None:
                retry_s = min(2 * retry_s, RETRY_MAX_S)
            if self._shell.ended.done():
                await self._shell.ended  # raises what went wrong meanwhile
        if self._refusal is not None:
            raise self._refusal
        if client.refused is not None:
            raise Refused(f"bootstrap refused this node: {client.refused}")
        credentials = client.credentials
        assert credentials is not None
        _store_seat(settings, credentials)
        self._enrolment_client = None
        return credentials

    def _ask_again(self, peer: Peer) -> None:
        """Apply again after the connection to bootstrap was lost, but not all at once whom it has no room for."""
        if peer == BOOTSTRAP and self._enrolment_client is not None and not self._answered.done():
            self._enrolment_client.waiting_for = NO_ANSWER
            later, send = asyncio.get_running_loop().call_later, self._transport.send
            later(self._settings.token % 100 / 100, send, BOOTSTRAP, self._enrolment_client.ask())

    def _no_answer(self) -> str:
        there = self._settings.bootstrap_place
        return f"waiting for bootstrap at {there}" if isinstance(there, Address) else "waiting for bootstrap"

    def _document(self, origin: Origin, frame: bytes) -> None:
        if self._addresses is not None and frame[KIND_AT : KIND_AT + 1] == bytes((Kind.ADDRESS,)):
            self._addresses.hear(frame)
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
                "the server at that address is not the bootstrap named in the join token: "
                f"{self._enrolment_client.doubt}"
            )
            self._answered.set_result(None)
        elif self._enrolment_client.credentials is not None or self._enrolment_client.refused is not None:
            self._answered.set_result(None)
        elif reply is not None:
            self._watch_expiry()
            if not self._shell.ended.done():
                self._transport.answer(origin, reply)

    def _begin(self, credentials: Credentials) -> None:
        remote = self._settings.remote
        if remote is not None:
            remote.admit(credentials)
        self._roster = credentials.roster
        self._settings.network.serve(credentials.me, self._transport)
        run, rows = self._settings.prepare(credentials.roster, credentials.me)
        if remote is not None and run.spec.run.durability == "power":
            self._disk.make_durable()  # the spec came from bootstrap
        journal = Journal(self._disk.stored.pop(VIEW), self._disk.stored.pop(PRIVATE))
        skeleton = handed_in(self._disk.read, run, credentials) if self._settings.share_skeleton else None
        host = user_host(
            run,
            credentials,
            journal,
            self._sampled(),
            self._entropy,
            rows,
            skeleton,
            self._disk.tap,
            shelf=self._disk.shelf,
            live_min=self._settings.live_min,
            beside=self._shell.beside,
        )
        self._shell.begin(host)
        if remote is not None:
            transport = self._transport
            self._addresses = AddressExchange(
                credentials, remote.own_address, lambda frame: transport.send(BOOTSTRAP, frame)
            )
            self._announcer = asyncio.get_running_loop().create_task(self._addresses.announce(), name="addresses")
            self._announcer.add_done_callback(self._announcer_ended)

    def _announcer_ended(self, announcer: asyncio.Task[None]) -> None:
        error = None if announcer.cancelled() else announcer.exception()
        if error is not None:
            self._shell.fail(error)

    def _on_connection(self, peer: Peer, there: bool) -> None:
        if peer == BOOTSTRAP and self._addresses is not None:
            self._connection_lost = not there
            self._addresses.again()

    async def _take_part(self) -> None:
        """Wait until the host is done; with remote peers, report meanwhile when bootstrap is away."""
        remote, ended, host = self._settings.remote, self._shell.ended, self._shell.host
        closed_s: float | None = None
        while remote is not None and host is not None and not ended.done():
            await asyncio.wait([ended], timeout=RETRY_S)
            now_s = self._clock.now_s()
            away = self._connection_lost or not host.heard(BOOTSTRAP)
            self._waiting.note(self._no_answer() if away and not ended.done() else None, now_s)
            closed_s = now_s if host.closed and closed_s is None else closed_s
            if not ended.done() and closed_s is not None and now_s >= closed_s + remote.give_up_s:
                raise RunFailed(
                    "this node's ledger is closed, and nobody takes its head: the run may be over without it; "
                    "once bootstrap is there again, the same command goes on"
                )
        await ended

    def _add_faults(self) -> None:
        host = self._shell.host
        told = {} if self._addresses is None else self._addresses.faults
        for kind, count in (*told.items(), *self._settings.network.faults.items()):
            if host is not None:
                host.fault_counts[kind] = host.fault_counts.get(kind, 0) + count


def _in_folder(folder: Path, error: VerificationFailed) -> VerificationFailed:
    """Return the error, with what it is about: what a node that comes back finds wrong is in its own folder."""
    if str(folder) in str(error):
        return error
    return VerificationFailed(
        f"{folder}: its files do not belong together: {error}; put them back as they were when this node ended, never "
        "older ones, or leave the run without it"
    )


def _lasts(settings: UserSettings) -> bool:
    """Return whether key and seat survive a power cut: in a local run only where ledgers do."""
    return settings.power or settings.remote is not None


def _store_seat(settings: UserSettings, known: Credentials) -> None:
    others = None if known.neighbours is None else list(known.neighbours)
    seat = pack([known.me, others, known.roster.to_bytes()])
    write_durably(settings.folder / SEAT_FILE, seat, power=_lasts(settings))


def _stored_seat(settings: UserSettings, run_key: RunKey) -> Credentials | None:
    """Return the credentials of a node that comes back, after checking that its files still belong together."""
    path = settings.folder / SEAT_FILE
    if not path.exists():
        return None
    try:
        me, neighbours, packed = unpack(path.read_bytes())
        known = Roster.from_bytes(packed)
        seat = Answer(SEAT, user=me, neighbours=None if neighbours is None else tuple(neighbours), roster=packed)
        mine = sign_entry(settings.identity, known.run_id, run_key.public, known.held(me).rows)
        roster = check_seat(seat, settings.bootstrap_public, mine, known.spec_digest, known.run_id)
    except (CodecError, RosterError, EnrolmentError, TypeError, ValueError, IndexError) as error:
        why = f" ({error})" if isinstance(error, RosterError | EnrolmentError) else ""
        raise VerificationFailed(
            f"{path}: is damaged, or {settings.folder / RUN_KEY_FILE} or this node's identity is{why}; put back the "
            "files as they were when this node ended, never older ones, or leave the run without this node"
        ) from None
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None
    return Credentials(me, roster, settings.identity, run_key, seat.neighbours)


def handed_in(read: Callable[[str], bytes], run: RunPlan, credentials: Credentials) -> Callable[[], bytes]:
    """Return what makes the skeleton that a node hands in, sealed to the auditor if the spec names one.

    `read` returns a closed ledger by its name. The bytes are the same each time, so that they can be handed in again
    after a restart.
    """
    auditor = run.spec.audit.key
    if auditor is None:
        return lambda: to_skeleton(read(VIEW))
    size = skeleton_size(run, run.n - 1 if credentials.neighbours is None else len(credentials.neighbours))
    return lambda: seal_skeleton(to_skeleton(read(VIEW)), bytes.fromhex(auditor), credentials.run_key.secret, size)


class Waiting:
    """Tells a person for whom or what a node waits: once that lasts, and then each time that it changes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since_s: float | None = None
        self._told: str | None = None

    def note(self, reason: str | None, now_s: float) -> None:
        """Take note of what the node waits for now, None for nothing; to be called from time to time."""
        if reason is None:
            if self._told is not None:
                self._say("bootstrap is there; it goes on")
            self._since_s = self._told = None
            return
        if self._since_s is None:
            self._since_s = now_s
        if reason != self._told and now_s - self._since_s >= NOTE_S:
            self._told = reason
            self._say(reason)
