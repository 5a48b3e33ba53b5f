"""Replay one user's records with its own machine, over symbols.

The machine gets symbolic inputs and the recorded events; its draws are the recorded ones, as symbols. What it then
does must be what its ledger says, record for record: otherwise `NotFollowed` names the node and the record.
The caller owes records that `auditor.verify` found well-formed.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.endings import COMPLAINT, STALLED, UNPROVEN, Complaint
from p2pdp.core.events import Event, Received, Started, Woken, tell
from p2pdp.core.ids import Peer
from p2pdp.core.messages import FINAL, MALFORMED
from p2pdp.core.step import Message, Step
from p2pdp.core.values import LinearForm, Share, Source, pair_source
from p2pdp.ledger.bodies import UserOpened
from p2pdp.ledger.records import (
    CHOSEN,
    DRAWN,
    KIND_NAMES,
    MET,
    OPENED,
    OWN,
    PAIRED,
    RECEIVED,
    REFUSED,
    SALT_BYTES,
    SENT,
    STARTED,
    WOKEN,
    Contents,
    Record,
    carries_value,
    public_message,
)
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.findings import NotFollowed, not_followed
from p2pdp.tasks.inputs import SymbolicInputs
from p2pdp.wire.codec import CodecError, unpack_message


class CutShort(Exception):
    """The records end in the middle of an event, as in the ledger of a user that is gone."""


class Player:
    """One user's records, replayed as far as possible."""

    def __init__(self, run: RunPlan, user: Peer, contents: Contents) -> None:
        self.user = user
        self._run = run
        self.records = contents.records
        self.cursor = 0
        self.draws: list[Mechanism] = []
        self.pairs: dict[Source, Mechanism] = {}
        self.received: list[LinearForm] = []
        self.taken: dict[Peer, int] = {}
        self.final: LinearForm | None = None  # its own result, where users have one
        opening = self.records[0] if self.records else None
        if opening is None or opening.kind != OPENED or len(opening.body) < len(UserOpened._fields):
            raise not_followed(user, None, "the ledger has no opening record")
        self.values = int(opening.body.values)
        self._inputs = self._symbols(user, self.values)
        try:
            machine = run.machine(user, opening.body.neighbours, self._inputs)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise not_followed(user, opening.index, "names neighbours that nobody can have in this run") from None
        self.machine = Participant(user, machine, run.protocol.messages)

    def _symbols(self, user: Peer, values: int) -> SymbolicInputs:
        """Return what stands for the user's inputs."""
        return SymbolicInputs(user, values)

    # core.draws.Draws, over the records

    def noise(self, mechanism: Mechanism, shape: Shape) -> LinearForm:
        record = self._take(DRAWN)
        expected = (len(self.draws), *mechanism, list(shape))
        if (record.body.number, *record.body.terms) != expected:
            raise self.mismatch(record, "is not the draw that the protocol makes here")
        self.draws.append(mechanism)
        return LinearForm.of(Source("draw", self.user, len(self.draws) - 1))

    def choice(self, options: int) -> int:
        record = self._take(CHOSEN)
        if record.body.options != options or not 0 <= record.body.picked < options:
            raise self.mismatch(record, "is not the choice that the protocol makes here")
        return int(record.body.picked)

    def meet(self, number: int, coin: float) -> list[Peer]:
        record = self._take(MET)
        if record.body.round != number or not all(
            type(peer) is int and peer != self.user for peer in record.body.users
        ):
            raise self.mismatch(record, "is not the meeting that the protocol has here")
        return list(record.body.users)

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> LinearForm:
        record = self._take(PAIRED)
        source = pair_source(self.user, peer, number)
        if record.body != (peer, number, *mechanism, list(shape)) or source in self.pairs:
            raise self.mismatch(record, "is not the draw with a peer that the protocol makes here")
        self.pairs[source] = mechanism
        return LinearForm.of(source)

    def pair_key(self, peer: Peer, number: int) -> Share:
        return Share(pair_source(self.user, peer, number))

    def _take(self, kind: int) -> Record:
        if self.cursor >= len(self.records):
            raise CutShort
        record = self.records[self.cursor]
        if record.kind != kind:
            raise self.mismatch(record, f"is {KIND_NAMES[record.kind]} where the protocol has {KIND_NAMES[kind]}")
        self.cursor += 1
        return record

    @property
    def models(self) -> dict[int, LinearForm]:
        """Return by visit the model at which a gradient was taken."""
        return self._inputs.models

    @property
    def contributions(self) -> int:
        return self._inputs.made

    @property
    def randomized(self) -> dict[Source, tuple[Mechanism, ...]]:
        """Return the recorded draws that each report was made with, or that chose the rows of a gradient."""
        made = self._inputs.randomized
        return {report: tuple(self.draws[draw.number] for draw in drawn) for report, drawn in made.items()}

    def mismatch(self, record: Record, what: str) -> NotFollowed:
        return not_followed(self.user, record.index, what)

    def event(self, value: Any) -> Event:
        """Return the event of the current record; `value` is the form of its message."""
        record = self.records[self.cursor]
        if record.kind == RECEIVED:
            public = public_message(record)
            return Received(record.body.sender, Message(public.type, public.fields, value))
        if record.kind == REFUSED:
            self._check_refusal(record)
            return Received(self.user, Message(COMPLAINT, (record.body.sender, record.body.fault)))
        if record.kind == OWN and _by_its_host(public := public_message(record)):
            return Received(self.user, public)
        if record.kind not in (STARTED, WOKEN):  # also what a user sends to itself belongs to the event that led to it
            raise self.mismatch(record, f"{KIND_NAMES[record.kind]} does not follow from any event")
        return Started() if record.kind == STARTED else Woken()

    def _check_refusal(self, record: Record) -> None:
        """Raise unless what was refused is wrong in the way that the record says, as far as its value is at hand."""
        if carries_value(record) and record.value is None:
            return
        part = record.value or b""
        salt, value = part[:SALT_BYTES], part[SALT_BYTES:]
        wrong: str | None = MALFORMED
        if len(salt) == (SALT_BYTES if value else 0):
            with suppress(CodecError):
                wrong = self._run.check(unpack_message(record.body.message, value))
        if wrong != record.body.fault:
            raise self.mismatch(record, "refuses a message in which nothing of the kind is wrong")

    def run_event(self, event: Event) -> list[tuple[Peer, Message]]:
        """Pass an event to the machine, compare what it does with the records, and return what it sends."""
        now_s = self.records[self.cursor].body.now_s
        self.cursor += 1
        outgoing: list[tuple[Peer, Message]] = []
        events = deque([event])
        while events:
            event = events.popleft()
            step = self._tell(event, now_s)
            for send in step.sends:
                if send.to != self.user:
                    self._sent(send.to, send.message)
                    outgoing.append((send.to, send.message))
            for send in step.sends:
                if send.to == self.user:
                    self._expect(self._take(OWN), send.message)
                    if send.message.type == FINAL:
                        self.final = send.message.value
                    events.append(Received(self.user, send.message))
        return outgoing

    def _tell(self, event: Event, now_s: float) -> Step:
        """Pass an event to the machine; a record may hold what no checked message could lead to."""
        try:
            return tell(self.machine, event, now_s, self)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise self.mismatch(self.records[self.cursor - 1], "is no message of this protocol") from None

    def _sent(self, to: Peer, message: Message) -> None:
        record = self._take(SENT)
        if record.body.receiver != to:
            raise self.mismatch(record, "goes to another peer than the protocol sends it to")
        self._expect(record, message)

    def _expect(self, record: Record, message: Message) -> None:
        public = public_message(record)
        if public.type != message.type or list(public.fields) != list(message.fields):
            raise self.mismatch(record, "is not the message that the protocol sends here")


def _by_its_host(message: Message) -> bool:
    """Return whether a host tells its machine this of itself, of what no record holds: time, and frames of control."""
    return message.type == STALLED or (message.type == COMPLAINT and Complaint(*message.fields).fault == UNPROVEN)
