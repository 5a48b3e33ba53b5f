"""One simulated operating-system process: its disk with two ledger files, and what it is while it is up.

A crash loses everything but the disk and what a node keeps in files of its own: keys, and its place in the roster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import LEDGER_MAGIC, records_in, whole_length
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.enrolment import EnrolmentClient
from p2pdp.peer.host import Host
from p2pdp.peer.tap import Tap, wire_line
from p2pdp.sim.faults import Crash, DiskFault


def lines_in(data: bytes) -> int:
    """Return how many records an entry has; the magic line counts as one."""
    return 1 if data == LEDGER_MAGIC else records_in(data)


class Disk:
    def __init__(self) -> None:
        self.view = bytearray()
        self.private = bytearray()
        self.pieces: dict[Peer, bytes] = {}  # of values on their way (`peer/pieces.py`)
        self.records = 0  # ever begun to be written, to both ledgers together; a piece counts as one
        self._ends = [(0, 0, 0)]  # after each entry of the view: its records, and lengths of view and private

    @property
    def view_records(self) -> int:
        return self._ends[-1][0]

    def append(self, name: str, data: bytes) -> None:
        self.records += lines_in(data)
        if name != VIEW:
            self.private += data
            return
        self.view += data
        if data != LEDGER_MAGIC:
            self._ends.append((self.view_records + lines_in(data), len(self.view), len(self.private)))

    def tear(self, name: str, data: bytes, kept_bytes: int) -> None:
        """Store the first bytes of an entry whose writing was cut short."""
        self.records += lines_in(data)
        torn = self.view if name == VIEW else self.private
        torn += data[:kept_bytes]

    def roll_back(self, view_records: int) -> None:
        """Bring back the earliest state with this many records, as a restored backup would."""
        while len(self._ends) > 1 and self._ends[-2][0] >= view_records:
            self._ends.pop()
        _, view, private = self._ends[-1]
        del self.view[view:], self.private[private:]

    def suffer(self, fault: DiskFault) -> None:
        fault.strike(self.view if fault.ledger == VIEW else self.private)

    def cut_torn_tails(self) -> None:
        for data in (self.view, self.private):
            del data[whole_length(bytes(data)) :]


class SharedKey(RunKey):
    """A run key in a world that agrees on each secret once: its second end takes what the first one computed."""

    __slots__ = ("_halves",)

    def __init__(self, secret: bytes, halves: dict[frozenset[bytes], bytes]) -> None:
        """`halves` has the secrets that one end has, for all keys of the world."""
        super().__init__(secret)
        self._halves = halves

    def agree(self, theirs: bytes) -> bytes:
        ends = frozenset((self.public, theirs))
        found = self._halves.pop(ends, None)
        if found is None:
            found = self._halves[ends] = super().agree(theirs)
        return found


class PiecesOf:
    """The shelf of a process (`peer/pieces.py`)."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def read(self, peer: Peer) -> bytes:
        return self._process.disk.pieces.get(peer, b"")

    def write(self, peer: Peer, at: int, head: bytes, data: bytes) -> None:
        self._process.keep(peer, self.read(peer)[:at], head + data)

    def drop(self, peer: Peer) -> None:
        if self._process.struck is None:
            self._process.disk.pieces.pop(peer, None)

    def clear(self) -> None:
        for peer in tuple(self._process.disk.pieces):
            self.drop(peer)


@dataclass
class Process:
    peer: Peer
    identity: Identity
    run_key: RunKey
    disk: Disk = field(default_factory=Disk)
    credentials: Credentials | None = None
    host: Host | None = None
    enrolment_client: EnrolmentClient | None = None
    up: bool = False
    returns: bool = True  # whether it is up, or will be
    incarnation: int = 0
    wake_at_s: float | None = None
    crashes: list[Crash] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)  # by kind, of lives that are over
    struck: Crash | None = None  # in the midst of a call, at a piece
    wire: list[bytes] | None = field(default=None, repr=False)  # lines of `wire.jsonl`, for who wants them

    def boot(self) -> None:
        self.up, self.struck = True, None
        self.incarnation += 1
        self.wake_at_s = None
        self.disk.cut_torn_tails()

    def stop(self, crash: Crash) -> None:
        self.up = False
        self.returns = crash.down_s is not None
        if self.host is not None:
            self.faults.update(self.host.fault_counts)
        self.host = None
        self.enrolment_client = None
        if crash.rolled_back_to is not None:
            self.disk.roll_back(crash.rolled_back_to)
        if crash.disk is not None:
            self.disk.suffer(crash.disk)

    def fail(self) -> None:
        """End for good, as a node does that cannot go on with what is on its disk."""
        self.stop(Crash(self.peer, down_s=None))
        self.faults["unusable_disk"] += 1

    def write(self, name: str, data: bytes) -> Crash | None:
        """Store one entry; return the crash that strikes at one of its records, if there is one."""
        crash = self._crash_in(lines_in(data))
        if crash is None or crash.torn_bytes is None:
            self.disk.append(name, data)
        else:
            self.disk.tear(name, data, crash.torn_bytes)
        return crash

    def _crash_in(self, records: int) -> Crash | None:
        numbers = range(self.disk.records + 1, self.disk.records + 1 + records)
        return next((crash for crash in self.crashes if crash.at_record in numbers), None)

    def keep(self, peer: Peer, before: bytes, data: bytes) -> None:
        """Store a piece behind those before, unless a crash struck in this call; one may strike at it."""
        if self.struck is None:
            self.struck = self._crash_in(1)
            self.disk.records += 1
            self.disk.pieces[peer] = before + data[: None if self.struck is None else self.struck.torn_bytes]

    @property
    def tap(self) -> Tap | None:
        wire = self.wire
        return None if wire is None else lambda sender, content: wire.append(wire_line(sender, content))

    def journal(self) -> Journal:
        return Journal(bytes(self.disk.view), bytes(self.disk.private))

    def entropy(self, seed: int) -> SeededEntropy:
        """Return streams that are different in each life, as they would be from an operating system."""
        return SeededEntropy(seed, f"entropy/{self.peer}/{self.incarnation}")

    def sampler(self, seed: int) -> SeededSampler:
        return SeededSampler(seed, f"draws/{self.peer}/{self.incarnation}")
