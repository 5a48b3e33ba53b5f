"""The simulated world: hosts, disks, a network and a clock, all from one seed.

The same hosts, machines, channels and ledgers as live; only the shell is different. A user's process asks for enrolment
first and is a host afterwards; a crash loses everything but its disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, Final

from p2pdp.assembly.hosts import bootstrap_host, curator_host, user_host
from p2pdp.core.endings import STOPPED, Stopped
from p2pdp.core.errors import RunFailed, VerificationFailed
from p2pdp.core.expiry import expired, expires_s
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import BLOCKED, EXCLUDED, Exclusion, OnePeer
from p2pdp.core.rows import ROWS_MAX
from p2pdp.core.step import Output
from p2pdp.crypto.enrolment import Offer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import Roster, sign_entry
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Effects
from p2pdp.peer.enrolment import RETRY_S, EnrolmentClient
from p2pdp.peer.host import Host
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.services.enrolment import EnrolmentService, Quorum, Replies
from p2pdp.sim.faults import NO_FAULTS, Crash, Faults, Network
from p2pdp.sim.process import PiecesOf, Process, SharedKey

_FRAME, _WAKE, _BOOT, _CRASH = range(4)
STALLED_S: Final = 3600.0  # simulated time without any record: nothing will happen any more
ASKED_A_PATIENCE: Final = 8  # times that a user without a seat asks for one
_BOXED: Final = 1  # where a frame's kind stands, for frames between hosts


def run_id_of(seed: int, spec_digest: bytes) -> bytes:
    """Return the id of a simulated run, which follows from its seed and its spec."""
    return blake2b(seed.to_bytes(16, "big") + spec_digest, digest_size=16, person=b"p2pdp run").digest()


class World:
    def __init__(
        self,
        run: RunPlan,
        rows: Callable[[Peer], Any],
        spec_text: str,
        spec_digest: bytes,
        seed: int,
        faults: Faults = NO_FAULTS,
    ) -> None:
        """`rows(user)` returns a user's bounded data; `spec_text` is what bootstrap offers."""
        self.run, self._rows = run, rows
        self._seed = seed
        self._spec_digest = spec_digest
        self._queue: list[tuple[float, int, int, Peer, Any]] = []
        self._order = self.events = 0
        self.now_s = self._progress_s = 0.0
        self._expires_s = expires_s(run.spec.run)
        self.network = Network(faults, seed)
        keys = SeededEntropy(seed, "keys")
        self.run_id = run_id_of(seed, spec_digest)
        peers, halves = (BOOTSTRAP, CURATOR, *range(run.n)), dict[frozenset[bytes], bytes]()
        self.processes = {peer: Process(peer, Identity(keys.seed()), SharedKey(keys.seed(), halves)) for peer in peers}
        for peer in peers:
            self._schedule(0.0, _BOOT, peer, None)
        for crash in faults.crashes:
            self.processes[crash.peer].crashes.append(crash)
            if crash.at_s is not None:
                self._schedule(crash.at_s, _CRASH, crash.peer, crash)
        self._secrets = [keys.salt() for _ in range(run.n)]
        self._offer = Offer(self.run_id, spec_text, self.processes[BOOTSTRAP].run_key.public)
        self._enrolment: EnrolmentService | None = None
        self.outputs: list[tuple[Peer, Output]] = []
        self.out: list[Peer] = []
        self.blocked: Peer | None = None
        self.stopped: Stopped | None = None

    # The clock

    def _schedule(self, at_s: float, kind: int, peer: Peer, content: Any) -> None:
        self._order += 1
        heappush(self._queue, (at_s, self._order, kind, peer, content))

    def run_to_end(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Run until all live hosts are done; raise `RunFailed` if that cannot come to pass."""
        while self._queue and not self._finished():
            at_s, _, kind, peer, content = heappop(self._queue)
            if self._expires_s is not None and at_s >= self._expires_s:
                raise expired(self.run.spec.run)
            self.now_s = at_s
            if at_s - self._progress_s > STALLED_S or (self.blocked is not None and not self._may_go_on(self.blocked)):
                break
            self.events += 1
            if progress is not None and self.events % 1024 == 0:
                progress(*self._progress())
            self._happen(kind, self.processes[peer], content)
        if not self._finished():
            raise RunFailed(why_not(self.processes, self.out, self.blocked, self._enrolment, self.run.plan.why_needed))

    def _progress(self) -> tuple[int, int]:
        """Return hops done and hops in all; messages of the life cycle make no difference worth counting."""
        users = (process.host for peer, process in self.processes.items() if peer >= 0)
        return sum(host.messages_sent for host in users if host is not None), self.run.exchanges

    @property
    def roster(self) -> Roster:
        """Return the signed roster; there is one as soon as any process has credentials."""
        for process in self.processes.values():
            if process.credentials is not None:
                return process.credentials.roster
        raise RunFailed("nobody is enrolled yet")

    def fault_counts(self) -> dict[str, int]:
        """Return faults by kind, over all hosts that there were."""
        counts: Counter[str] = Counter()
        for process in self.processes.values():
            counts.update(process.faults)
            counts.update({} if process.host is None else process.host.fault_counts)
        return dict(sorted(counts.items()))

    def _finished(self) -> bool:
        """Return whether the curator, which closes last, has closed: peers gone by then are out or handed in heads."""
        curator = self.processes[CURATOR].host
        if curator is None or not curator.done:
            return False
        for process in self.processes.values():
            if process.host is None:
                if process.returns:
                    return False
            elif not (process.host.done or process.host.stopped):
                return False
        return True

    def _may_go_on(self, peer: Peer) -> bool:
        """Return whether the peer that the run is waiting for is there, or will be."""
        process = self.processes[peer]
        return process.returns and not (process.host is not None and process.host.stopped)

    # What happens

    def _happen(self, kind: int, process: Process, content: Any) -> None:
        try:
            self._act(kind, process, content)
        except VerificationFailed:  # a node ends there, and comes back only if somebody mends its disk
            process.fail()

    def _act(self, kind: int, process: Process, content: Any) -> None:
        if kind == _BOOT:
            self._boot(process)
        elif kind == _CRASH:
            self._crash(process, content)
        elif not process.up:
            return
        elif kind == _FRAME:
            self._frame(process, *content)
        elif content == process.incarnation:
            self._wake(process)

    def _boot(self, process: Process) -> None:
        process.boot()
        if process.peer == BOOTSTRAP:
            self._boot_bootstrap(process)
        elif process.credentials is not None:
            self._take_seat(process, process.credentials)
        elif process.peer != CURATOR:
            self._apply_for_seat(process)

    def _boot_bootstrap(self, process: Process) -> None:
        curator, run_spec = self.processes[CURATOR], self.run.spec.run
        self._journal = process.journal()
        self._enrolment = EnrolmentService(
            process.identity,
            process.run_key,
            self._offer,
            self._spec_digest,
            run_spec.protocol,
            sign_entry(curator.identity, self.run_id, curator.run_key.public),
            self._secrets,
            Quorum(self.run.n, run_spec.min_nodes or self.run.n, run_spec.enrol_timeout_s),
            lambda _n, _rows: (self.run.neighbours, self.run.facts),
            self._journal,
            process.entropy(self._seed),
            rows_max=None if self.run.rows is None else ROWS_MAX,
        )
        self._replied(process, self._enrolment.begin(self.now_s))

    def _replied(self, process: Process, replies: Replies) -> None:
        """Act on replies to enrolments; with the roster, bootstrap and curator get their credentials."""
        if not self._write(process, replies.writes):
            return
        for origin, frame in replies.frames:
            self._transmit(process.peer, origin, frame)
        self._wake_process(process, replies.wake_at_s)
        assert self._enrolment is not None
        roster = self._enrolment.roster
        if roster is None or process.host is not None:
            return
        curator = self.processes[CURATOR]
        if curator.credentials is None:
            curator.credentials = Credentials(CURATOR, roster, curator.identity, curator.run_key, None)
            if curator.up:
                self._take_seat(curator, curator.credentials)
        self._take_seat(process, Credentials(BOOTSTRAP, roster, process.identity, process.run_key, None))

    def _apply_for_seat(self, process: Process) -> None:
        process.enrolment_client = EnrolmentClient(
            process.identity,
            process.run_key,
            process.peer,
            self._secrets[process.peer],
            self.processes[BOOTSTRAP].identity.public,
            lambda _text: self._spec_digest,
            process.entropy(self._seed),
            lambda: None if self.run.rows is None else self.run.rows[process.peer],
        )
        self._ask(process)

    def _ask(self, process: Process) -> None:
        assert process.enrolment_client is not None
        self._transmit(process.peer, BOOTSTRAP, process.enrolment_client.ask())
        # Connections send again what gets lost; here the one who asks has to, some times in a patience.
        self._wake_process(process, self.now_s + min(RETRY_S, self.run.spec.run.patience_s / ASKED_A_PATIENCE))

    def _take_seat(self, process: Process, credentials: Credentials) -> None:
        process.credentials, process.enrolment_client = credentials, None
        process.host = self._host_of(process, credentials)
        self._carry_out(process, process.host.begin(self.now_s))

    def _host_of(self, process: Process, credentials: Credentials) -> Host:
        """Make the host of a process in this life; it has not begun yet."""
        sampler, entropy, tap = process.sampler(self._seed), process.entropy(self._seed), process.tap
        if process.peer == BOOTSTRAP:
            return bootstrap_host(self.run, credentials, self._journal, sampler, entropy, tap=tap)
        if process.peer == CURATOR:
            return curator_host(self.run, credentials, process.journal(), sampler, entropy, tap, PiecesOf(process))
        journal = process.journal()
        rows = self._rows(process.peer) if journal.inputs is None else None
        return user_host(self.run, credentials, journal, sampler, entropy, rows, tap=tap, shelf=PiecesOf(process))

    def _frame(self, process: Process, sender: Peer, data: bytes) -> None:
        if process.enrolment_client is not None:
            reply = process.enrolment_client.frame(data)
            if process.enrolment_client.credentials is not None:
                self._take_seat(process, process.enrolment_client.credentials)
            elif reply is not None:
                self._transmit(process.peer, BOOTSTRAP, reply)
        elif data[1] != _BOXED:
            if process.peer == BOOTSTRAP and self._enrolment is not None:
                self._replied(process, self._enrolment.frame(sender, data, self.now_s))
        elif process.host is not None:
            self._carry_out(process, process.host.frame(data, self.now_s))

    def _wake(self, process: Process) -> None:
        process.wake_at_s = None
        if process.enrolment_client is not None:
            self._ask(process)
        elif process.host is not None:
            self._carry_out(process, process.host.wake(self.now_s))
        elif self._enrolment is not None and process.peer == BOOTSTRAP:
            self._replied(process, self._enrolment.wake(self.now_s))

    # Effects

    def _carry_out(self, process: Process, effects: Effects) -> None:
        if not self._write(process, effects.writes):
            return
        if process.peer < 0 and process.host is not None and process.host.stopped:
            self.blocked = process.peer  # nobody can do without a role
        for output in effects.outputs:
            self.outputs.append((process.peer, output))
            if output.type == BLOCKED:
                self.blocked = OnePeer(*output.fields).peer
            elif output.type == STOPPED:
                self.stopped = Stopped(*output.fields)
            elif output.type == EXCLUDED and (peer := Exclusion(*output.fields).peer) not in self.out:
                self.out.append(peer)
        for receiver, frame in effects.frames:
            self._transmit(process.peer, receiver, frame)
        self._wake_process(process, effects.wake_at_s)

    def _wake_process(self, process: Process, at_s: float | None) -> None:
        """Schedule a wake unless an earlier one is coming; a spurious wake does no harm."""
        if at_s is not None and (process.wake_at_s is None or at_s < process.wake_at_s):
            process.wake_at_s = max(at_s, self.now_s)
            self._schedule(process.wake_at_s, _WAKE, process.peer, process.incarnation)

    def _transmit(self, sender: Peer, receiver: Peer, frame: bytes) -> None:
        for at_s in self.network.arrivals(sender, receiver, len(frame), self.now_s):
            self._schedule(at_s, _FRAME, receiver, (sender, frame))

    def _write(self, process: Process, writes: tuple[tuple[str, bytes], ...]) -> bool:
        """Append records one by one; False if the process crashed at one of them, or at a piece before them."""
        if process.struck is not None:
            self._crash(process, process.struck)
            return False
        if writes:
            self._progress_s = self.now_s
        for name, data in writes:
            crash = process.write(name, data)
            if crash is not None:
                self._crash(process, crash)
                return False
        return True

    def _crash(self, process: Process, crash: Crash) -> None:
        if crash in process.crashes:
            process.crashes.remove(crash)
        if not process.up:
            return
        process.stop(crash)
        if process.peer == BOOTSTRAP:
            self._enrolment = None
        if crash.down_s is not None:
            self._schedule(self.now_s + crash.down_s, _BOOT, process.peer, None)


def why_not(
    processes: Mapping[Peer, Process],
    out: Collection[Peer],
    blocked: Peer | None,
    enrolment: EnrolmentService | None,
    why_needed: str,
) -> str:
    """Return why a run came to no end. `blocked` is whom bootstrap waits for; who is `out` is missed by nobody."""
    stopped = [peer for peer, process in processes.items() if process.host is not None and process.host.stopped]
    if enrolment is not None and enrolment.roster is None and processes[CURATOR].credentials is not None:
        stopped.append(BOOTSTRAP)  # it gave out places that it does not remember
    if stopped:
        return f"the run stopped: the disk of {_names(stopped)} was rolled back"
    gone = [peer for peer, process in processes.items() if not process.returns and peer not in out]
    if blocked is not None and blocked in gone:
        name = peer_name(blocked)
        why = f", and {why_needed}" if why_needed and is_user(blocked) else ""
        return f"the run is blocked: {name} is gone{why}; it goes on when {name} is back"
    return f"the run came to a standstill; gone: {_names(gone) or 'nobody'}"


def _names(peers: Iterable[Peer]) -> str:
    return ", ".join(str(peer_name(peer)) for peer in peers)
