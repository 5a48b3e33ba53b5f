"""The simulated world: hosts, disks, a network and a clock, all from one seed.

The same hosts, machines, channels and ledgers as live; only the shell is different. A user's process is
an applicant until it has a seat and a host afterwards; a crash loses everything but its disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, Final

from p2pdp.assembly.hosts import bootstrap_host, curator_host, user_host
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.step import Output
from p2pdp.crypto.enrolment import Offer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, sign_entry
from p2pdp.host.applicant import RETRY_S, Applicant
from p2pdp.host.effects import Effects
from p2pdp.host.host import Host
from p2pdp.host.seat import Seat
from p2pdp.ledger.journal import PRIVATE, Journal
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.services.bootstrap import BLOCKED
from p2pdp.services.desk import Desk, Quorum, Replies
from p2pdp.sim.disk import Disk
from p2pdp.sim.faults import NO_FAULTS, Crash, Faults
from p2pdp.sim.network import Network

_FRAME, _WAKE, _BOOT, _CRASH = range(4)
STALLED_S: Final = 3600.0  # simulated time without any record: nothing will happen any more


@dataclass
class Process:
    """One simulated operating-system process and its disk."""

    peer: Peer
    identity: Identity
    run_key: RunKey
    disk: Disk = field(default_factory=Disk)
    host: Host | None = None
    applicant: Applicant | None = None
    up: bool = False
    incarnation: int = 0
    wake_at_s: float | None = None
    crashes: list[Crash] = field(default_factory=list)


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
        """`rows(user)` gives a user's bounded data; `spec_text` is what bootstrap offers."""
        self.run = run
        self._rows = rows
        self._seed = seed
        self._faults = faults
        self._spec_digest = spec_digest
        self._queue: list[tuple[float, int, int, Peer, Any]] = []
        self._order = 0
        self.now_s = 0.0
        self.started_s = 0.0
        self.events = 0
        self._progress_s = 0.0
        self.network = Network(faults, seed)
        keys = SeededEntropy(seed, "keys")
        self.run_id = blake2b(seed.to_bytes(16, "big") + spec_digest, digest_size=16, person=b"p2pdp run").digest()
        peers = (BOOTSTRAP, CURATOR, *range(run.n))
        self.processes = {peer: Process(peer, Identity(keys.seed()), RunKey(keys.seed())) for peer in peers}
        for crash in faults.crashes:
            self.processes[crash.peer].crashes.append(crash)
            if crash.at_s is not None:
                self._schedule(crash.at_s, _CRASH, crash.peer, crash)
        self._secrets = [keys.salt() for _ in range(run.n)]
        self._offer = Offer(self.run_id, spec_text, self.processes[BOOTSTRAP].run_key.public)
        self._desk: Desk | None = None
        self.outputs: list[tuple[Peer, Output]] = []
        self.blocked: Peer | None = None
        for peer in peers:
            self._schedule(0.0, _BOOT, peer, None)

    # The clock

    def _schedule(self, at_s: float, kind: int, peer: Peer, content: Any) -> None:
        self._order += 1
        heappush(self._queue, (at_s, self._order, kind, peer, content))

    def run_to_end(self, progress: Callable[[int], None] | None = None) -> None:
        """Runs until all live hosts are done; raises `RunFailed` if that cannot come to pass."""
        while self._queue and not self._finished():
            at_s, _, kind, peer, content = heappop(self._queue)
            self.now_s = at_s
            if at_s - self._progress_s > STALLED_S or (self.blocked is not None and not self._may_return()):
                break
            self.events += 1
            if progress is not None and self.events % 1024 == 0:
                progress(self.events)
            self._happen(kind, self.processes[peer], content)
        if not self._finished():
            raise RunFailed(self._why_not())

    def _finished(self) -> bool:
        curator = self.processes[CURATOR].host
        if curator is None or not curator.done:
            return False
        return all(self._settled(process) for process in self.processes.values())

    def _settled(self, process: Process) -> bool:
        if process.host is not None and process.up:
            return process.host.done or process.host.stopped
        return process.peer in self.out

    def _may_return(self) -> bool:
        """Whether the user at whom the run is blocked is up again, or will be."""
        assert self.blocked is not None
        waiting = any(kind == _BOOT and peer == self.blocked for _, _, kind, peer, _ in self._queue)
        return waiting or self.processes[self.blocked].up

    def _why_not(self) -> str:
        if self.blocked is not None:
            name = peer_name(self.blocked)
            return f"the run is blocked: {name} is gone, and a ring cannot go round; it goes on when {name} is back"
        stopped = [str(peer_name(process.peer)) for process in self.processes.values() if self._rolled_back(process)]
        if stopped:
            return f"the run stopped: the disk of {', '.join(stopped)} was rolled back"
        down = [str(peer_name(peer)) for peer, process in self.processes.items() if not process.up]
        return f"the run came to a standstill; gone: {', '.join(down) or 'nobody'}"

    def _rolled_back(self, process: Process) -> bool:
        return process.host is not None and process.host.stopped

    @property
    def out(self) -> list[Peer]:
        return [output.fields[0] for _, output in self.outputs if output.type == "excluded"]

    # What happens

    def _happen(self, kind: int, process: Process, content: Any) -> None:
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
        process.up = True
        process.incarnation += 1
        process.wake_at_s = None
        process.disk.cut_torn_tails()
        if process.peer == BOOTSTRAP:
            self._boot_bootstrap(process)
        elif process.peer == CURATOR and self._roster is not None:
            self._take_seat(process, Seat(CURATOR, self._roster, process.identity, process.run_key, None))
        elif process.peer != CURATOR and process.disk.view:
            self._take_seat(process, self._seat_again(process))
        elif process.peer != CURATOR:
            self._apply_for_seat(process)

    @property
    def _roster(self) -> Roster | None:
        return self._desk.roster if self._desk is not None else None

    def _seat_again(self, process: Process) -> Seat:
        assert self._roster is not None
        neighbours = self.run.neighbours(process.peer)
        listed = None if neighbours is None else tuple(neighbours)
        return Seat(process.peer, self._roster, process.identity, process.run_key, listed)

    def _entropy(self, process: Process) -> SeededEntropy:
        return SeededEntropy(self._seed, f"entropy/{process.peer}/{process.incarnation}")

    def _sampler(self, process: Process) -> SeededSampler:
        return SeededSampler(self._seed, f"draws/{process.peer}/{process.incarnation}")

    def _boot_bootstrap(self, process: Process) -> None:
        curator = self.processes[CURATOR]
        run_spec = self.run.spec.run
        journal = Journal(bytes(process.disk.view), bytes(process.disk.private))
        self._desk = Desk(
            process.identity,
            process.run_key,
            self._offer,
            self._spec_digest,
            run_spec.protocol,
            sign_entry(curator.identity, self.run_id, curator.run_key.public),
            self._secrets,
            Quorum(self.run.n, run_spec.min_nodes or self.run.n, run_spec.enrol_timeout_s),
            lambda _n: (self.run.neighbours, self.run.facts),
            journal,
            self._entropy(process),
        )
        self._journal = journal
        process.host = None
        self._replied(process, self._desk.begin(self.now_s))

    def _replied(self, process: Process, replies: Replies) -> None:
        if not self._write(process, replies.writes):
            return
        for origin, frame in replies.frames:
            self._transmit(process.peer, origin, frame)
        roster = self._roster
        if roster is not None and process.host is None:
            seat = Seat(BOOTSTRAP, roster, process.identity, process.run_key, None)
            run = self.run
            process.host = bootstrap_host(run, seat, self._journal, self._sampler(process), self._entropy(process))
            self._carry_out(process, process.host.begin(self.now_s))
            curator = self.processes[CURATOR]
            if curator.host is None and curator.up:
                self._take_seat(curator, Seat(CURATOR, roster, curator.identity, curator.run_key, None))
        self._wake_process(process, replies.wake_at_s)

    def _apply_for_seat(self, process: Process) -> None:
        process.applicant = Applicant(
            process.identity,
            process.run_key,
            process.peer,
            self._secrets[process.peer],
            self.processes[BOOTSTRAP].identity.public,
            lambda _text: self._spec_digest,
            self._entropy(process),
        )
        self._ask(process)

    def _ask(self, process: Process) -> None:
        assert process.applicant is not None
        self._transmit(process.peer, BOOTSTRAP, process.applicant.ask())
        self._wake_process(process, self.now_s + RETRY_S)

    def _take_seat(self, process: Process, seat: Seat) -> None:
        journal = Journal(bytes(process.disk.view), bytes(process.disk.private))
        sampler, entropy = self._sampler(process), self._entropy(process)
        if process.peer == CURATOR:
            process.host = curator_host(self.run, seat, journal, sampler, entropy)
        else:
            rows = self._rows(process.peer) if journal.inputs is None else None
            process.host = user_host(self.run, seat, journal, sampler, entropy, rows)
        process.applicant = None
        self._carry_out(process, process.host.begin(self.now_s))

    def _frame(self, process: Process, sender: Peer, data: bytes) -> None:
        if process.applicant is not None:
            reply = process.applicant.frame(data)
            if process.applicant.seat is not None:
                self._take_seat(process, process.applicant.seat)
            elif reply is not None:
                self._transmit(process.peer, BOOTSTRAP, reply)
        elif process.peer == BOOTSTRAP and self._desk is not None and data[1] != 1:
            self._replied(process, self._desk.frame(sender, data, self.now_s))
        elif process.host is not None:
            self._carry_out(process, process.host.frame(data, self.now_s))

    def _wake(self, process: Process) -> None:
        process.wake_at_s = None
        if process.applicant is not None:
            self._ask(process)
        elif process.host is not None:
            self._carry_out(process, process.host.wake(self.now_s))
        elif self._desk is not None and process.peer == BOOTSTRAP:
            self._replied(process, self._desk.wake(self.now_s))

    # Effects

    def _carry_out(self, process: Process, effects: Effects) -> None:
        if not self._write(process, effects.writes):
            return
        for output in effects.outputs:
            self.outputs.append((process.peer, output))
            if output.type == BLOCKED:
                self.blocked = output.fields[0]
        for receiver, frame in effects.frames:
            self._transmit(process.peer, receiver, frame)
        self._wake_process(process, effects.wake_at_s)

    def _wake_process(self, process: Process, at_s: float | None) -> None:
        """Schedules a wake unless an earlier one is coming; a spurious wake does no harm."""
        if at_s is not None and (process.wake_at_s is None or at_s < process.wake_at_s):
            process.wake_at_s = max(at_s, self.now_s)
            self._schedule(process.wake_at_s, _WAKE, process.peer, process.incarnation)

    def _transmit(self, sender: Peer, receiver: Peer, frame: bytes) -> None:
        for at_s in self.network.arrivals(sender, receiver, len(frame), self.now_s):
            self._schedule(at_s, _FRAME, receiver, (sender, frame))

    def _write(self, process: Process, writes: tuple[tuple[str, bytes], ...]) -> bool:
        """Appends records one by one; False if the process crashed at one of them."""
        if writes:
            self._progress_s = self.now_s
        for name, data in writes:
            if name == PRIVATE:
                process.disk.private += data
                continue
            process.disk.append_view(data)
            for crash in process.crashes:
                if crash.at_record == process.disk.view_records:
                    self._crash(process, crash)
                    return False
        return True

    def _crash(self, process: Process, crash: Crash) -> None:
        if crash in process.crashes:
            process.crashes.remove(crash)
        if not process.up:
            return
        process.up = False
        process.host = None
        process.applicant = None
        if process.peer == BOOTSTRAP:
            self._desk = None
        if crash.rolled_back_to is not None:
            process.disk.roll_back(crash.rolled_back_to)
        if crash.down_s is not None:
            self._schedule(self.now_s + crash.down_s, _BOOT, process.peer, None)
