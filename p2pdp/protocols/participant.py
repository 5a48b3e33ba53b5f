"""The part of a user's machine that all protocols share: readiness, exclusions, and the end of the run.

Wraps a protocol's machine and is a machine itself. It keeps, per item, the facts that decide whether an item
is lost when somebody is excluded (`services/settlement.py`): the highest step at which each peer passed it to
this user, and the peer to which this user passed it last. Both follow from recorded events alone, so they survive a
restart. They are reported only after an exclusion, and only to bootstrap.

Bootstrap is also told, once for each peer, of whom a message was refused: by the host, since it has not the form that
the protocol declares or a value that no user could send, or by the machine, since it is impossible at the moment.

A node whose owner asks for a number of live users leaves the run once it knows of fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.endings import COMPLAINT, STALLED, STOP, TOO_FEW, UNEXPECTED, Complaint, Stop
from p2pdp.core.events import FastExchange, Hop, Machine, Preparer
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import Exclusion, MessageTable
from p2pdp.core.step import NOTHING, Fault, Message, Send, Step

_HERE: Final = frozenset({messages.OUT, messages.PROBE, STOP})  # bootstrap's messages that no machine gets


class Participant:
    def __init__(self, me: Peer, machine: Machine, table: MessageTable, out_max: int | None = None) -> None:
        """No more than `out_max` users may be put out, as far as this one is told, or it leaves the run."""
        self._me = me
        self._out_max = out_max
        self._table = table
        self._for_the_machine = table.sent("bootstrap", "user") - _HERE
        self._machine = machine
        self._preparer = machine if isinstance(machine, Preparer) else None
        self._received_at: dict[Peer, dict[int, int]] = {}  # sender -> item -> highest step
        self._before: dict[int, int] = {}  # item -> the sender's number of the hop before, if it was another
        self._passed: dict[int, tuple[Peer, int]] = {}  # item -> last receiver and its step
        self._out: set[Peer] = set()
        self._complained: set[Complaint] = set()
        self.going = False  # everybody was ready
        self.result: Message | None = None
        self.excluded_myself = False
        self.stopped: str | None = None  # why there will be no result for this user

    @property
    def finished(self) -> bool:
        return self.result is not None or self.excluded_myself or self.stopped is not None

    @property
    def learned(self) -> Any:
        """Return how far the protocol's own model is (`learning.Learned`); None where it has none to tell of."""
        return getattr(self._machine, "learned", None)

    def prepare(self) -> None:
        if self._preparer is not None:
            self._preparer.prepare()

    def start(self, now_s: float, draws: Draws) -> Step:
        return Step(sends=(Send(BOOTSTRAP, Message(messages.READY)),))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender < 0:
            answer = self._from_role(sender, message, now_s, draws)
            if answer is not None:
                return answer
        if sender in self._out:
            return Step(faults=(Fault("excluded_peer", sender),))
        if sender == self._me and message.type in (COMPLAINT, STALLED):
            return self._complaint(*message.fields) if message.type == COMPLAINT else _to_bootstrap(message)
        custody = self._table.custody_of(message)
        if custody is not None and message.type == messages.LOST and sender == BOOTSTRAP:
            self._passed.pop(custody.item, None)
        step = self._noted(self._machine.receive(sender, message, now_s, draws))
        if sender == self._me:
            return step
        if step.faults and Fault(UNEXPECTED, sender) in step.faults:
            return step.then(self._complaint(sender, UNEXPECTED))
        if custody is not None:
            self.hopped(((sender, *custody, self._me, custody.step),))
            known = self._table.get(message.type)
            if known is not None and known.before is not None:
                self._before[custody.item] = known.named(known.before, message)
        return step

    def _complaint(self, peer: Peer, fault: str) -> Step:
        """Tell bootstrap, once of each fault of each peer: one that does no harm must not hide another."""
        complaint = Complaint(peer, fault)
        if complaint in self._complained or peer == BOOTSTRAP:
            return NOTHING
        self._complained.add(complaint)
        return _to_bootstrap(Message(COMPLAINT, complaint))

    def noting(self, exchange: FastExchange) -> FastExchange:
        """Return this exchange of the machine's, of what must not get lost, with the notes that `receive` takes."""

        def noted(sender: Peer, fields: tuple[int, ...], value: Any, now_s: float, draws: Draws) -> Step | None:
            step = None if sender in self._out else exchange(sender, fields, value, now_s, draws)
            if step is None:
                return None
            item, at = fields
            step = self._noted(step)
            self.hopped(((sender, item, at, self._me, at),))
            return step

        return noted

    def hopped(self, hops: Iterable[Hop]) -> None:
        """Record hops that the fast path made (`core.events.Passer`)."""
        received_at, passed, me = self._received_at, self._passed, self._me
        for sender, item, step, to, at in hops:
            steps = received_at.get(sender)
            if steps is None:
                steps = received_at[sender] = {}
            if steps.get(item, step) <= step:
                steps[item] = step
            if to != me:
                passed[item] = (to, at)

    def _from_role(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step | None:
        """Handle a message of bootstrap or curator; return None for those that the machine gets."""
        if sender == BOOTSTRAP and message.type not in self._for_the_machine:
            return self._from_bootstrap(message, now_s, draws)
        if sender == BOOTSTRAP and message.type == messages.GO:
            self.going = True
            return self._noted(self._machine.start(now_s, draws))
        if sender == CURATOR and message.type == messages.RESULT:
            self.result = message
            return NOTHING
        return None

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._noted(self._machine.wake(now_s, draws))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        if peer == self._me:
            self.excluded_myself = True
            return NOTHING
        self._out.add(peer)
        step = self._noted(self._machine.excluded(peer, now_s, draws))
        came = self._received_at.get(peer, {})
        receipts = sorted([self._before.get(item, item), item, at] for item, at in came.items())
        claims = sorted([item, at] for item, (to, at) in self._passed.items() if to in self._out)
        answer = Send(BOOTSTRAP, Message(messages.SEEN, (peer, receipts, claims)))
        if self._out_max is not None and len(self._out) > self._out_max:
            self.stopped = TOO_FEW
        return step.then(Step((answer,)))

    def _from_bootstrap(self, message: Message, now_s: float, draws: Draws) -> Step:
        if message.type == messages.OUT:
            return self.excluded(Exclusion(*message.fields).peer, now_s, draws)
        if message.type == messages.PROBE:
            return Step(sends=(Send(BOOTSTRAP, Message(messages.ALIVE)),))
        if message.type == STOP:
            self.stopped = Stop(*message.fields).reason
            return NOTHING
        return Step(faults=(Fault("unexpected_message", BOOTSTRAP),))

    def _noted(self, step: Step) -> Step:
        for to, _, custody in step.sends:
            if custody is not None and to != self._me:
                self._passed[custody.item] = (to, custody.step)
        return step


def _to_bootstrap(message: Message) -> Step:
    return Step((Send(BOOTSTRAP, message),))
