"""Bare machines and ledgers: no channels, links, services or clock.

What a machine sends is recorded by its sender and by its receiver, in the record format of real hosts, and
delivered at once. It answers what a protocol costs without the rest, and drives machines in tests that do
not care about the rest. Nobody crashes and nothing is lost here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from p2pdp.core.events import Received, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import BEGIN, Item
from p2pdp.core.step import Message, Send
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import OWN, RECEIVED, SALT_BYTES, SENT
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.peer.draws import RecordedDraws
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.wire.codec import pack_message, pack_value, unpack_message


class BareWorld:
    def __init__(self, run: RunPlan, rows: Callable[[Peer], Any], seed: int) -> None:
        self._run = run
        self._entropy = SeededEntropy(seed, "bare")
        self._journals = [Journal() for _ in range(run.n)]
        self._machines = []
        self._draws = []
        self._queue: deque[tuple[Peer, Peer, bytes, bytes]] = deque()
        self.views = [bytearray() for _ in range(run.n)]
        self.totals: dict[int, Any] = {}
        for user in range(run.n):
            inputs, _ = run.protocol.inputs(run.plan, rows(user))
            self._machines.append(run.protocol.machine(run.plan, user, run.neighbours(user) or (), inputs))
            sampler = SeededSampler(seed, f"draws/{user}/1")
            self._draws.append(RecordedDraws(self._journals[user], sampler, self._entropy))

    def run_to_end(self) -> Any:
        """Runs all items to their totals and gives what would be published."""
        for start in self._run.plan.starts:
            self._event(start.user, BOOTSTRAP, pack_message(Message(BEGIN, (start.item, 0))), b"")
        while self._queue:
            self._event(*self._queue.popleft())
        return self._run.protocol.publish(self._run.plan, [self.totals[item] for item in sorted(self.totals)])

    def _event(self, user: Peer, sender: Peer, packed: bytes, part: bytes) -> None:
        journal = self._journals[user]
        salt, value = part[:SALT_BYTES], part[SALT_BYTES:]
        if sender == user:
            journal.append(OWN, (0.0, packed), value, salt)
        else:
            journal.append(RECEIVED, (0.0, sender, packed, bytes(16)), value, salt)
        event = Received(sender, unpack_message(packed, value))
        for send in tell(self._machines[user], event, 0.0, self._draws[user]).sends:
            self._send(user, send, journal)
        for name, data in journal.take_writes():
            if name == VIEW:
                self.views[user] += data

    def _send(self, user: Peer, send: Send, journal: Journal) -> None:
        packed, value = pack_message(send.message), pack_value(send.message.value)
        salt = self._entropy.salt()
        if send.to == user:
            self._queue.append((user, user, packed, salt + value))
            return
        part = journal.append(SENT, (send.to, packed), value, salt)
        if send.to == CURATOR:
            self.totals[Item(*send.message.fields).item] = send.message.value
        else:
            self._queue.append((send.to, user, packed, part))
