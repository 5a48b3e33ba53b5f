"""A simulated world that is moved on step by step, disturbed at chosen messages, and tells what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop
from typing import Final

from p2pdp.core import messages
from p2pdp.core.ids import Peer, peer_name
from p2pdp.core.messages import (
    BEGIN,
    BLOCKED,
    EXCLUDED,
    LOST,
    OUT,
    REPORT,
    RESOLVED,
    SEEN,
    SILENT,
    SPARED,
    TOKEN,
    TOTAL,
)
from p2pdp.core.step import Message
from p2pdp.ledger import records
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Record, carries_message, public_message
from p2pdp.peer.effects import Effects
from p2pdp.protocols.shuffle.plan import RELAY
from p2pdp.sim.faults import Crash, Faults
from p2pdp.sim.process import Process
from p2pdp.sim.world import _BOOT, _FRAME, STALLED_S
from tests.support.fault_worlds import WatchedWorld

SHOWN: Final = frozenset(
    {BEGIN, TOKEN, TOTAL, LOST, messages.PROBE, messages.ALIVE, OUT, SEEN, RESOLVED, SPARED, messages.HEEDED}
    | {messages.RESULT, REPORT, SILENT}
)
NO_MESSAGE: Final = "ack"  # a frame that carries no message for the first time


@dataclass
class Rule:
    """What happens to the next frame from one peer to another that carries a message of this type."""

    what: str
    sender: Peer
    receiver: Peer
    type: str
    seconds: float = 0.0


@dataclass
class Armed:
    """A crash that waits for a send."""

    peer: Peer
    when: str
    type: str


@dataclass
class Until:
    peer: Peer
    verb: str
    type: str
    hit: bool = False


@dataclass
class Names:
    """Hops of reports go by random numbers; a script shows them as h1, h2, … in order of appearance."""

    known: dict[int, str] = field(default_factory=dict)

    def __call__(self, item: int) -> str:
        return str(item) if abs(item) < 1000 else self.known.setdefault(item, f"h{len(self.known) + 1}")


class ScriptWorld(WatchedWorld):
    """A world that is moved on step by step, and tells what happens."""

    def __init__(self, text: str, seed: int) -> None:
        super().__init__(text, seed, Faults(jitter_s=0.0))
        self.lines: list[str] = []
        self.shown = set(SHOWN)
        self.rules: list[Rule] = []
        self.armed: list[Armed] = []
        self.cut: frozenset[Peer] = frozenset()
        self.until: Until | None = None
        self.names = Names()
        self._carried: dict[Peer, list[str]] = {}
        self._dying: Process | None = None

    def note(self, text: str) -> None:
        self.lines.append(f"{self.now_s:8.3f}  {text}")

    # Moving on

    def move_on(self, over: Callable[[], bool], until_s: float = float("inf")) -> bool:
        """Run until `over` is true; False if time is up before, or nothing happens any more."""
        self._progress_s = self.now_s
        while not over():
            if not self._queue or self._queue[0][0] > until_s or self._queue[0][0] - self._progress_s > STALLED_S:
                return False
            self.now_s, _, kind, peer, content = heappop(self._queue)
            self._happen(kind, self.processes[peer], content)
        return True

    @property
    def finished(self) -> bool:
        return self._finished()

    # Faults

    def stop(self, process: Process) -> None:
        if process.up:
            self.note(f"{peer_name(process.peer)} crashes")
        else:  # it has not started yet, and never will of itself
            self._queue = [event for event in self._queue if (event[2], event[3]) != (_BOOT, process.peer)]
            heapify(self._queue)
            process.returns = False
        self._crash(process, Crash(process.peer, down_s=None))

    def start(self, process: Process) -> None:
        self.note(f"{peer_name(process.peer)} restarts")
        process.returns = True
        self._boot(process)

    def _write(self, process: Process, writes: tuple[tuple[str, bytes], ...]) -> bool:
        self._carried = {}
        for name, data in writes:
            entry = _records(data) if name == VIEW else []
            sent = {public_message(record).type for record in entry if record.kind == SENT}
            crash = next((one for one in self.armed if one.peer == process.peer and one.type in sent), None)
            if crash is not None:
                self.armed.remove(crash)
            if crash is not None and crash.when == "before":
                self.stop(process)
                return False
            if not super()._write(process, ((name, data),)):
                return False
            for record in entry:
                self._recorded(process.peer, record)
            if crash is not None and crash.when == "on":
                self.stop(process)
                return False
            self._dying = process if crash is not None else self._dying
        return True

    def _carry_out(self, process: Process, effects: Effects) -> None:
        super()._carry_out(process, effects)
        for output in effects.outputs if process.up else ():
            if output.type in (BLOCKED, EXCLUDED):
                self.note(f"bootstrap decides: {output.type} {peer_name(output.fields[0])}")
        if self._dying is not None:
            dying, self._dying = self._dying, None
            self.stop(dying)

    def _transmit(self, sender: Peer, receiver: Peer, frame: bytes) -> None:
        carried = self._carried.pop(receiver, []) or [NO_MESSAGE]
        if (sender in self.cut) != (receiver in self.cut):
            return
        found = [rule for rule in self.rules if (rule.sender, rule.receiver) == (sender, receiver)]
        rule = next((rule for rule in found if rule.type in carried), None)
        if rule is None:
            super()._transmit(sender, receiver, frame)
            return
        self.rules.remove(rule)
        self.note(f"{rule.what}: {peer_name(sender)} to {peer_name(receiver)}: {rule.type}")
        self._reach(receiver, "misses", rule.type)
        for at_s in {"drop": [], "double": [0.001, 0.002], "delay": [rule.seconds]}[rule.what]:
            self._schedule(self.now_s + at_s, _FRAME, receiver, (sender, frame))

    # What is told

    def _recorded(self, peer: Peer, record: Record) -> None:
        if not carries_message(record):
            return
        message = public_message(record)
        if record.kind == SENT:
            self._carried.setdefault(record.body[0], []).append(message.type)
            self._reach(peer, "sends", message.type)
            if message.type in self.shown:
                self.note(f"{peer_name(peer)} to {peer_name(record.body[0])}: {self.words(message)}")
        elif record.kind in (RECEIVED, OWN):
            self._reach(peer, "gets", message.type)
            if record.kind == OWN and message.type in self.shown:
                self.note(f"{peer_name(peer)} to itself: {self.words(message)}")

    def _reach(self, peer: Peer, verb: str, kind: str) -> None:
        if self.until is not None and (self.until.peer, self.until.verb, self.until.type) == (peer, verb, kind):
            self.until.hit = True

    def words(self, message: Message) -> str:
        """Return a message's public part, as a person reads it."""
        kind, fields = message.type, message.fields
        if kind in (BEGIN, TOKEN, TOTAL, LOST):
            return f"{kind} {self.names(fields[0])} at step {fields[1]}"
        if kind in (RELAY, REPORT):
            return f"{kind} {' to '.join(map(self.names, fields[:-1]))}, round {fields[-1]}"
        if kind == SEEN:
            peer, receipts, claims = fields
            got = "".join(f"; it gave me {self.names(item)} at step {step}" for _, item, step in receipts)
            return f"{kind} {peer}{got}" + "".join(
                f"; I passed {self.names(one)} at step {step}" for one, step in claims
            )
        if kind == RESOLVED:
            again = "".join(f"; {peer} sends {count} again" for peer, count in fields[1])
            return f"{kind}: {', '.join(map(str, fields[0]))} out{again}"
        if kind in (OUT, SILENT, SPARED):
            return f"{kind} {peer_name(fields[0])}"
        return " ".join([kind, *(str(one) for one in fields if isinstance(one, int))])


def _records(data: bytes) -> list[Record]:
    return [] if data == records.LEDGER_MAGIC else records.read(records.LEDGER_MAGIC + data).records
