"""Runs a recorded run again, over symbols instead of values.

Every user's machine is made anew with symbolic inputs and told the recorded events; its draws are the
recorded ones, as symbols. What it then sends must be what its ledger says it sent, record for record:
a ledger that does not follow from the protocol raises `VerificationFailed`. A message's form comes from
its sender's replay, so users are replayed side by side, each as far as the messages it has allow.

The result says for every message exactly which inputs and draws it contains, whatever was lost, retried
or gone round. Values are never looked at: skeletons are enough.

Where a sender's ledger is absent (it was excluded, or the audit allows missing ones), what it sent is an
`unknown` source, and whoever's view depends on it must be refused.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.events import Event, Received, Started, Woken, tell
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Source
from p2pdp.ledger.messages import public_message
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    KIND_NAMES,
    OPENED,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    STARTED,
    Contents,
    Record,
)
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.inputs import SymbolicInputs

Outbox = dict[tuple[Peer, Peer], list[Any]]  # on each link, the forms of what was sent

UNKNOWN: Final = "unknown"


@dataclass
class Transcript:
    """What everybody saw, as linear forms, and what everybody drew."""

    received: dict[Peer, list[LinearForm]] = field(default_factory=dict)
    draws: dict[Peer, list[Mechanism]] = field(default_factory=dict)
    values: dict[Peer, int] = field(default_factory=dict)  # how many values a user has
    own_noise: dict[Peer, list[tuple[Mechanism, ...]]] = field(default_factory=dict)  # of each contribution
    totals: dict[int, LinearForm] = field(default_factory=dict)
    published: LinearForm | None = None


class _CutShort(Exception):
    """The records end in the middle of an event: the ledger of somebody who is gone."""


class _User:
    """One user's records, replayed as far as possible."""

    def __init__(self, run: RunPlan, user: Peer, contents: Contents) -> None:
        self.user = user
        self.records = contents.records
        self.cursor = 0
        self.draws: list[Mechanism] = []
        self.received: list[LinearForm] = []
        self.own_noise: list[tuple[Mechanism, ...]] = []
        self.taken: dict[Peer, int] = {}
        opening = self.records[0] if self.records else None
        if opening is None or opening.kind != OPENED or len(opening.body) < 6:
            raise VerificationFailed(f"node {user}: the ledger has no opening record")
        self.values = int(opening.body[4])
        machine = run.protocol.machine(run.plan, user, opening.body[5] or (), SymbolicInputs(user, self.values))
        self.machine = Participant(user, machine)

    # core.draws.Draws, over the records

    def noise(self, mechanism: Mechanism, shape: Shape) -> LinearForm:
        record = self._take(DRAWN)
        expected = [len(self.draws), mechanism.name, mechanism.scale, mechanism.categories, list(shape)]
        if record.body[:5] != expected:
            raise self.mismatch(record, "is not the draw that the protocol makes here")
        self.draws.append(mechanism)
        return LinearForm.of(Source("draw", self.user, len(self.draws) - 1))

    def choice(self, options: int) -> int:
        record = self._take(CHOSEN)
        if record.body[0] != options or not 0 <= record.body[1] < options:
            raise self.mismatch(record, "is not the choice that the protocol makes here")
        return int(record.body[1])

    def _take(self, kind: int) -> Record:
        if self.cursor >= len(self.records):
            raise _CutShort
        record = self.records[self.cursor]
        if record.kind != kind:
            raise self.mismatch(record, f"is {KIND_NAMES[record.kind]} where the protocol has {KIND_NAMES[kind]}")
        self.cursor += 1
        return record

    def mismatch(self, record: Record, what: str) -> VerificationFailed:
        return VerificationFailed(f"node {self.user}, record {record.index}: {what}")

    def event(self, value: Any) -> Event:
        """The event at the cursor; `value` is the form of the message it tells of."""
        record = self.records[self.cursor]
        if record.kind == RECEIVED:
            public = public_message(record)
            return Received(record.body[1], Message(public.type, public.fields, value))
        if record.kind == OWN:
            return Received(self.user, public_message(record))
        return Started() if record.kind == STARTED else Woken()

    def run_event(self, event: Event) -> list[tuple[Peer, Any]]:
        """Tells the machine an event, compares what it does with the records, and gives the forms it sends."""
        now_s = self.records[self.cursor].body[0]
        self.cursor += 1
        outgoing: list[tuple[Peer, Any]] = []
        events = deque([event])
        while events:
            event = events.popleft()
            drawn = len(self.draws)
            step = tell(self.machine, event, now_s, self)
            if isinstance(event, Received) and event.message.type == TOKEN:
                self.own_noise.append(tuple(self.draws[drawn:]))
            for send in step.sends:
                if send.to != self.user:
                    self._sent(send.to, send.message)
                    outgoing.append((send.to, send.message.value))
            for send in step.sends:
                if send.to == self.user:
                    self._expect(self._take(OWN), send.message)
                    events.append(Received(self.user, send.message))
        return outgoing

    def _sent(self, to: Peer, message: Message) -> None:
        record = self._take(SENT)
        if record.body[0] != to:
            raise self.mismatch(record, "goes to another peer than the protocol sends it to")
        self._expect(record, message)

    def _expect(self, record: Record, message: Message) -> None:
        public = public_message(record)
        if public.type != message.type or list(public.fields) != list(message.fields):
            raise self.mismatch(record, "is not the message that the protocol sends here")


def replay(run: RunPlan, views: dict[Peer, Contents]) -> Transcript:
    """The transcript of a run from ledgers or skeletons that `audit.verify` found consistent."""
    replayed = _Replay(run, views)
    replayed.run_all()
    transcript = Transcript()
    for user, state in replayed.users.items():
        transcript.received[user] = state.received
        transcript.draws[user] = state.draws
        transcript.values[user] = state.values
        transcript.own_noise[user] = state.own_noise
    if CURATOR in views:
        _curator(run, views[CURATOR], replayed, transcript)
    return transcript


class _Replay:
    """All users side by side: one who waits for a message goes on when its sender has sent it."""

    def __init__(self, run: RunPlan, views: dict[Peer, Contents]) -> None:
        self.users = {peer: _User(run, peer, contents) for peer, contents in views.items() if is_user(peer)}
        self.outbox: Outbox = {}
        self._ended: set[Peer] = set()
        self._waiting: dict[Peer, set[Peer]] = {}  # sender -> who needs something of it
        self._ready = deque(self.users)

    def run_all(self) -> None:
        while self._ready:
            self._advance(self.users[self._ready.popleft()])
        stuck = [user for user in self.users if user not in self._ended]
        if stuck:
            where = self.users[stuck[0]].cursor
            raise VerificationFailed(f"node {stuck[0]}, record {where}: received before it was sent")

    def _advance(self, state: _User) -> None:
        """Replays one user until it needs a message whose form is not known, or its records end."""
        while state.cursor < len(state.records):
            record = state.records[state.cursor]
            try:
                if record.kind == RECEIVED:
                    if not self._receive(state, record):
                        return
                elif record.kind in (STARTED, OWN):
                    self._run(state, state.event(None))
                elif record.kind in (OPENED, CLOSED):
                    state.cursor += 1
                else:
                    raise state.mismatch(record, f"{KIND_NAMES[record.kind]} does not follow from any event")
            except _CutShort:
                state.cursor = len(state.records)
        self._ended.add(state.user)
        self._ready.extend(self._waiting.pop(state.user, ()))

    def _receive(self, state: _User, record: Record) -> bool:
        """False if the message's form is not known yet."""
        sender = record.body[1]
        value = None
        if is_user(sender):
            number = state.taken.get(sender, 0)
            sent = self.outbox.get((sender, state.user), ())
            if number < len(sent):
                value = sent[number]
            elif sender in self.users and sender not in self._ended:
                self._waiting.setdefault(sender, set()).add(state.user)
                return False
            elif public_message(record).type == TOKEN:
                value = LinearForm.of(Source(UNKNOWN, sender, number))
            state.taken[sender] = number + 1
            if value is not None:
                state.received.append(value)
        self._run(state, state.event(value))
        return True

    def _run(self, state: _User, event: Event) -> None:
        for to, form in state.run_event(event):
            self.outbox.setdefault((state.user, to), []).append(form)
            waiting = self._waiting.get(state.user, set())
            if to in waiting:
                waiting.discard(to)
                self._ready.append(to)


def _curator(run: RunPlan, contents: Contents, replayed: _Replay, transcript: Transcript) -> None:
    """The totals that the curator received, and what it published."""
    taken: dict[Peer, int] = {}
    for record in contents.records:
        if record.kind == RECEIVED and is_user(record.body[1]):
            sender = record.body[1]
            number = taken.get(sender, 0)
            taken[sender] = number + 1
            message = public_message(record)
            if message.type == TOTAL:
                sent = replayed.outbox.get((sender, CURATOR), [])
                form = sent[number] if number < len(sent) else LinearForm.of(Source(UNKNOWN, sender, number))
                transcript.totals.setdefault(message.fields[0], form)
        elif record.kind == PUBLISHED:
            totals = [transcript.totals[item] for item in sorted(transcript.totals)]
            transcript.published = run.protocol.publish(run.plan, totals)
