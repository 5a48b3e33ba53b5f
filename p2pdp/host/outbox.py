"""What a machine wants done, recorded and then sent: the way from a step to the frames that it leads to.

Guarantee: whatever a step sends or publishes has its record before the link gets it; in a replay the records stand
there already, the links have counted their messages, and nothing is sent.
"""

from __future__ import annotations

from p2pdp.core.ids import Peer
from p2pdp.core.step import Message, Output, Send, Step
from p2pdp.host.effects import Entropy
from p2pdp.host.notes import Notes
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import OWN, PUBLISHED, SENT
from p2pdp.wire.codec import pack_message, pack_value


class Outbox:
    def __init__(self, me: Peer, journal: Journal, peers: Peers, notes: Notes, entropy: Entropy) -> None:
        self._me = me
        self._journal = journal
        self._peers = peers
        self._notes = notes
        self._entropy = entropy
        self._outputs: list[Output] = []

    def carry_out(self, step: Step, now_s: float) -> list[Send]:
        """Carries out a step, but for when it wants to be woken; what it sends to itself is given back."""
        for output in step.outputs:
            if output.recorded:
                value = pack_value(output.value)
                message = Message(output.type, output.fields)
                self._journal.append(PUBLISHED, (pack_message(message),), value, self._salt_for(value))
            self._outputs.append(output)
        for send in step.sends:
            if send.to != self._me:
                self._send(send, now_s)
        for fault in step.faults:
            self._notes.add(fault, again=self._journal.replaying)
        return [send for send in step.sends if send.to == self._me]

    def to_itself(self, message: Message, now_s: float) -> None:
        """Records what the machine is about to be told of its own."""
        value = pack_value(message.value)
        self._journal.append(OWN, (now_s, pack_message(message)), value, self._salt_for(value))

    def take_outputs(self) -> tuple[Output, ...]:
        outputs, self._outputs = tuple(self._outputs), []
        return outputs

    def _send(self, send: Send, now_s: float) -> None:
        to, message, _ = send
        packed, value = pack_message(message), pack_value(message.value)
        again = self._journal.replaying
        part = self._journal.append(SENT, (to, packed), value, self._salt_for(value))
        if again:  # its link counted it when the ledger was read
            return
        self._peers.send(to, packed, part, now_s)
        self._peers.messages_sent += 1

    def _salt_for(self, value: bytes) -> bytes:
        return self._entropy.salt() if value and not self._journal.replaying else b""
