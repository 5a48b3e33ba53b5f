"""The outbox of a machine: its steps are recorded and then carried out. Also the log of faults.

Guarantee: whatever a step sends or publishes has its record before the link gets it. In a replay the records are there
already, the links have counted their messages, and nothing is sent. Each fault is counted, and the first of them are
noted in the private ledger: what others do wrong fills neither memory nor disk, however long they go on.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.core.ids import Peer
from p2pdp.core.step import Fault, Message, Output, Send, Step
from p2pdp.ledger.bodies import Note, PublishedMessage
from p2pdp.ledger.entries import LARGE_BYTES
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import NOTE, OWN, PUBLISHED, SENT, digest_of
from p2pdp.peer.effects import Entropy
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_behind, pack_message, pack_value


class Outbox:
    def __init__(self, me: Peer, journal: Journal, peers: Peers, fault_log: FaultLog, entropy: Entropy) -> None:
        self._me = me
        self._journal = journal
        self._peers = peers
        self._fault_log = fault_log
        self._entropy = entropy
        self._outputs: list[Output] = []
        self._vector: tuple[Any, bytes, bytes] | None = None  # the large vector that was sent last in this step

    def carry_out(self, step: Step, now_s: float) -> list[Send]:
        """Carry out a step, but for when it wants to be woken, and return what it sends to itself.

        A large vector that goes to several peers has one salt, one digest, and one place in the ledger.
        """
        self._vector = None
        for output in step.outputs:
            if output.recorded:
                value = pack_value(output.value)
                message = Message(output.type, output.fields)
                self._journal.append(PUBLISHED, PublishedMessage(pack_message(message)), value, self._salt_for(value))
            self._outputs.append(output)
        for send in step.sends:
            if send.to != self._me:
                self._send(send, now_s)
        self._vector = None
        for fault in step.faults:
            self._fault_log.add(fault, again=self._journal.replaying)
        return [send for send in step.sends if send.to == self._me]

    def to_itself(self, message: Message, now_s: float) -> None:
        """Record what the machine is about to be told of its own."""
        value = pack_value(message.value)
        self._journal.append(OWN, (now_s, pack_message(message)), value, self._salt_for(value))

    def take_outputs(self) -> tuple[Output, ...]:
        outputs, self._outputs = tuple(self._outputs), []
        return outputs

    def _send(self, send: Send, now_s: float) -> None:
        to, message, _ = send
        packed, value = pack_message(message), message.value
        journal = self._journal
        if journal.replaying:  # its link counted it when the ledger was read
            journal.again(SENT, (to, packed), pack_value(value))
            return
        if value is None:
            part, digest = b"", None
        elif getattr(value, "nbytes", 0) < LARGE_BYTES:
            part, digest = pack_behind(self._entropy.salt(), value), None
        else:
            part, digest = self._vector_part(value)
        journal.add(part, SENT, to, packed, digest=digest)
        self._peers.send(to, packed, part, now_s, digest)
        self._peers.messages_sent += 1

    def _vector_part(self, value: Any) -> tuple[bytes, bytes]:
        """Return the value part of a large vector, and its digest; for the same one as before they are the same."""
        if self._vector is None or self._vector[0] is not value:
            part = pack_behind(self._entropy.salt(), value)
            self._vector = value, part, digest_of(part)
        return self._vector[1:]

    def _salt_for(self, value: bytes) -> bytes:
        return self._entropy.salt() if value and not self._journal.replaying else b""


LOGGED_MAX: Final = 200  # beyond them only the counts go on


class FaultLog:
    def __init__(self, journal: Journal, entropy: Entropy) -> None:
        self._journal = journal
        self._entropy = entropy
        self.new: list[Fault] = []
        self.counts: dict[str, int] = {}

    def add(self, fault: Fault, *, again: bool = False) -> None:
        """Count a fault and note it, unless a replay comes to it `again`."""
        self.counts[fault.kind] = self.counts.get(fault.kind, 0) + 1
        if again:
            return
        self.new.append(fault)
        journal = self._journal
        if sum(self.counts.values()) <= LOGGED_MAX and not (journal.closed or journal.private_closed):
            event = len(journal.stored()) if journal.replaying else journal.count
            journal.append_private(NOTE, Note(event), fault.kind.encode(), self._entropy.salt())

    def take(self, faults: list[Fault]) -> None:
        """Add all of them, and empty the list."""
        for fault in faults:
            self.add(fault)
        faults.clear()

    def take_new(self) -> tuple[Fault, ...]:
        """Return the faults since the last call."""
        new, self.new = tuple(self.new), []
        return new
