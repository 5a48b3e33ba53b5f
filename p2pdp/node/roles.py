"""Bootstrap and curator: two machines in one process, behind one port.

A blocked run (see `services/bootstrap.py`) raises `RunFailed`. Started again, bootstrap's ledger tells of
that block once more: then whoever caused it gets the time of two patiences to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.hosts import bootstrap_host, curator_host
from p2pdp.core.addresses import Place
from p2pdp.core.draws import Sampler
from p2pdp.core.errors import RunFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import BLOCKED, OnePeer
from p2pdp.core.rows import Rows
from p2pdp.core.spec import RunPart
from p2pdp.core.step import Output
from p2pdp.crypto.enrolment import Offer
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, sign_entry
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import PUBLISHED
from p2pdp.node.clock import Clock, Expiry, LoopClock, Turns
from p2pdp.node.disk import Disk, durable_secret, is_closed
from p2pdp.node.shell import KIND_AT, HostShell
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.link import STOPPED
from p2pdp.protocols.run_plan import Planner, RunPlan
from p2pdp.services.addresses import Directory
from p2pdp.services.enrolment import EnrolmentService, Quorum, Replies
from p2pdp.transports.contract import Network, Origin
from p2pdp.wire.frames import Kind

LINGER_S: Final = 3.0
ANSWERS_AT_ONCE: Final = 32
RUN_KEY_FILE: Final = "run.key"
BOOTSTRAP_FOLDER: Final = "bootstrap"  # below the curator's


@dataclass(frozen=True)
class RolesSettings:
    """The settings of bootstrap and curator; `prepare(n, rows)` makes the plan, and `where` returns a user's place.

    Where users are on machines of their own, `where` is None and they announce their addresses. Then bootstrap and
    curator wait up to `linger_s` for all users to leave: an excluded one that comes back is told so, and one whose last
    message got lost can send it again.
    """

    folder: Path
    identity: Identity
    curator_identity: Identity
    run_id: bytes
    spec_text: str
    spec_digest: bytes
    run: RunPart
    secrets: Sequence[bytes]
    quorum: Quorum
    prepare: Planner
    network: Network
    where: Callable[[Roster, Peer], Place | None] | None
    sampler: Callable[[], Sampler]
    on_roster: Callable[[Roster], None]
    on_output: Callable[[Peer, Output], None]
    power: bool = False
    on_enrolled: Callable[[int], None] = lambda _count: None
    linger_s: float | None = None
    trace_wire: bool = False
    rows_max: int | None = None  # how many rows a user may state, where each has to


def have_finished(folder: Path) -> bool:
    """Return whether both did all of their part before: ledgers are closed, and a run key is unlinked."""
    places = (folder, folder / BOOTSTRAP_FOLDER)
    if all((place / RUN_KEY_FILE).exists() for place in places) or not all(is_closed(place) for place in places):
        return False
    for place in places:
        (place / RUN_KEY_FILE).unlink(missing_ok=True)
    return True


class RolesNode:
    """Make it within a running event loop."""

    def __init__(self, settings: RolesSettings) -> None:
        self._settings = settings
        self._clock = LoopClock.of_loop()
        clocks = {BOOTSTRAP: self._clock, CURATOR: Clock()}  # the curator's times tell how long a run took
        watches = {BOOTSTRAP: Turns().slowness, CURATOR: None}
        self._entropy = SystemEntropy()
        self._folders = {BOOTSTRAP: settings.folder / BOOTSTRAP_FOLDER, CURATOR: settings.folder}
        disk = partial(Disk, power=settings.power, trace_wire=settings.trace_wire)
        self._disks = {peer: disk(folder) for peer, folder in self._folders.items()}
        self._keys = {peer: RunKey(durable_secret(folder / RUN_KEY_FILE)) for peer, folder in self._folders.items()}
        self.shells = {
            peer: HostShell(
                disk,
                clocks[peer],
                self._document,
                self._output_handler(peer),
                on_connection=self._watcher_of(peer),
                slowness=watches[peer],
            )
            for peer, disk in self._disks.items()
        }
        network = settings.network
        self._transports = {peer: network.attach(shell, self._where) for peer, shell in self.shells.items()}
        for peer, shell in self.shells.items():
            shell.transport = self._transports[peer]
            network.serve(peer, self._transports[peer])
        self._roster: Roster | None = None
        self._run: RunPlan | None = None
        self._directory: Directory | None = None
        self._left: set[Peer] = set()
        self._enrolled = 0
        self._timers: list[asyncio.TimerHandle] = []
        self._expiry = Expiry(Clock().now_s, self._fail)
        self.nobody_left = asyncio.Event()
        self._journals = {peer: Journal(disk.stored[VIEW], disk.stored[PRIVATE]) for peer, disk in self._disks.items()}
        self._journal = self._journals[BOOTSTRAP]
        self._old_outputs = {
            peer: sum(record.kind == PUBLISHED for record in journal.stored())
            for peer, journal in self._journals.items()
        }
        self._enrolment = self._make_enrolment()

    async def run(self) -> None:
        """Run until both ledgers are closed. Raise `RunFailed` where the run is blocked."""
        await self._settings.network.listen()
        try:
            bootstrap = self.shells[BOOTSTRAP]
            bootstrap.safely(lambda: self._replied(self._enrolment.begin(self._clock.now_s())))
            self._expiry.watch(self._settings.run)
            await self._ended()
            self._expiry.stop()  # the run has ended
            await self._linger()
            self._add_faults()
            for peer, place in self._folders.items():
                self.shells[peer].write_totals(place)
            self._drop_run_keys()
        except Expired:
            self._drop_run_keys()
            raise
        finally:
            self._expiry.stop()
            self._settings.network.close()
            for timer in self._timers:
                timer.cancel()
            for peer, shell in self.shells.items():
                shell.stop()
                await self._transports[peer].close()

    async def _ended(self) -> None:
        """Wait until both have ended. If one of them cannot go on, the other could only wait for it."""
        waiting = {shell.ended for shell in self.shells.values()}
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            errors = [error for one in ended if (error := one.exception()) is not None]
            if errors:
                raise errors[0]
            for peer, shell in self.shells.items():
                if shell.host is not None and shell.host.stopped:
                    raise RunFailed(f"{peer_name(peer)} cannot go on: {STOPPED}")

    def _drop_run_keys(self) -> None:
        for place in self._folders.values():
            (place / RUN_KEY_FILE).unlink(missing_ok=True)
        self._disks[CURATOR].shelf.clear()

    def _fail(self, error: BaseException) -> None:
        for shell in self.shells.values():
            shell.fail(error)

    async def _linger(self) -> None:
        """Acknowledge heads that are handed in again, until no user is left or for a while."""
        try:
            linger_s = self._settings.linger_s
            await asyncio.wait_for(self.nobody_left.wait(), LINGER_S if linger_s is None else linger_s)
        except TimeoutError:
            return

    def _output_handler(self, peer: Peer) -> Callable[[Output], None]:
        def handle(output: Output) -> None:
            self._settings.on_output(peer, output)
            if not output.recorded:
                return
            old = self._old_outputs[peer] > 0  # a restart tells again what its ledger tells
            self._old_outputs[peer] -= 1
            if output.type == BLOCKED:
                self._blocked(OnePeer(*output.fields).peer, old=old)

        return handle

    def _blocked(self, who: Peer, *, old: bool) -> None:
        shell = self.shells[BOOTSTRAP]
        assert self._run is not None
        why = (self._run.plan.why_needed if is_user(who) else "") or "nobody can go round it"
        if not old:
            raise RunFailed(f"{who_is(who)} is gone, and {why}")

        def still() -> None:
            if shell.host is not None and not shell.host.heard(who):
                raise RunFailed(f"{who_is(who)} is still gone, and {why}")

        patience_s = self._run.spec.run.patience_s
        self._timers.append(asyncio.get_running_loop().call_later(2 * patience_s, shell.safely, still))

    def _where(self, peer: Peer) -> Place | None:
        if self._roster is None:
            return None
        where = self._settings.where
        if where is not None:
            return where(self._roster, peer)
        text = None if self._directory is None else self._directory.where(peer)
        return None if text is None else self._settings.network.place(text)

    def _watcher_of(self, me: Peer) -> Callable[[Peer, bool], None]:
        def on_connection(peer: Peer, there: bool) -> None:
            """Send a remote user that is back what it may have missed, and note who left the curator."""
            if self._directory is None or self._roster is None or not is_user(peer):
                return
            if me == BOOTSTRAP and there:
                for frame in self._directory.for_user(peer):
                    self._transports[BOOTSTRAP].send(peer, frame)
            elif me == CURATOR:
                (self._left.discard if there else self._left.add)(peer)
                if len(self._left) == self._roster.n:
                    self.nobody_left.set()

        return on_connection

    def _add_faults(self) -> None:
        host, told = self.shells[BOOTSTRAP].host, {} if self._directory is None else self._directory.faults
        told = {**told, **self._enrolment.fault_counts}
        for kind, count in (*told.items(), *self._settings.network.faults.items()):
            if host is not None:
                host.fault_counts[kind] = host.fault_counts.get(kind, 0) + count

    def _make_enrolment(self) -> EnrolmentService:
        settings = self._settings
        return EnrolmentService(
            settings.identity,
            self._keys[BOOTSTRAP],
            Offer(settings.run_id, settings.spec_text, self._keys[BOOTSTRAP].public),
            settings.spec_digest,
            settings.run.protocol,
            sign_entry(settings.curator_identity, settings.run_id, self._keys[CURATOR].public),
            settings.secrets,
            settings.quorum,
            self._prepare,
            self._journal,
            self._entropy,
            rows_max=settings.rows_max,
        )

    def _prepare(self, n: int, rows: Rows | None) -> tuple[Callable[[Peer], Any], Any]:
        self._run = self._settings.prepare(n, rows)
        return self._run.neighbours, self._run.facts

    def _document(self, origin: Origin, frame: bytes) -> None:
        if self._directory is not None and frame[KIND_AT : KIND_AT + 1] == bytes((Kind.ADDRESS,)):
            told = self._directory.hear(frame)
            for answer in told.answers:
                self._transports[BOOTSTRAP].answer(origin, answer)
            for user, onward in told.onward:
                self._transports[BOOTSTRAP].send(user, onward)
            return
        self._replied(self._enrolment.frame(origin, frame, self._clock.now_s()))

    def _replied(self, replies: Replies) -> None:
        """Act on the replies of enrolment; with the roster, bootstrap and curator get their credentials."""
        self._disks[BOOTSTRAP].append(replies.writes)
        self._answer(iter(replies.frames))
        if replies.wake_at_s is not None and not self._timers:
            delay_s = max(0.0, replies.wake_at_s - self._clock.now_s())
            wake = self.shells[BOOTSTRAP].safely
            self._timers.append(asyncio.get_running_loop().call_later(delay_s, wake, self._enrolment_wakes))
        if self._enrolment.enrolled != self._enrolled:
            self._enrolled = self._enrolment.enrolled
            self._settings.on_enrolled(self._enrolled)
        roster = self._enrolment.roster
        if roster is not None and self._roster is None:
            self._take_seats(roster)

    def _answer(self, frames: Iterator[tuple[Origin, bytes]]) -> None:
        """Send a few in each turn of the loop: all rosters together could fill the memory before the first leaves."""
        some = list(islice(frames, ANSWERS_AT_ONCE))
        for origin, frame in some:
            self._transports[BOOTSTRAP].answer(origin, frame)
        if len(some) == ANSWERS_AT_ONCE:
            on = self.shells[BOOTSTRAP].safely
            asyncio.get_running_loop().call_soon(on, lambda: self._answer(frames))

    def _enrolment_wakes(self) -> None:
        self._timers.clear()
        self._replied(self._enrolment.wake(self._clock.now_s()))

    def _take_seats(self, roster: Roster) -> None:
        self._roster = roster
        self._settings.on_roster(roster)
        assert self._run is not None
        if self._settings.where is None:
            self._directory = Directory(roster, self._run.neighbours)
        settings, run, sampler, entropy = self._settings, self._run, self._settings.sampler(), self._entropy
        credentials = Credentials(CURATOR, roster, settings.curator_identity, self._keys[CURATOR], None)
        journal, disk = self._journals[CURATOR], self._disks[CURATOR]
        self.shells[CURATOR].begin(curator_host(run, credentials, journal, sampler, entropy, disk.tap, disk.shelf))
        credentials = Credentials(BOOTSTRAP, roster, settings.identity, self._keys[BOOTSTRAP], None)
        tap = self._disks[BOOTSTRAP].tap
        self.shells[BOOTSTRAP].begin(bootstrap_host(run, credentials, self._journal, sampler, entropy, tap))


def who_is(peer: Peer) -> str:
    return f"user {peer}" if is_user(peer) else str(peer_name(peer))
