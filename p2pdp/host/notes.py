"""Faults of a peer's life: each is counted, and the first of them are noted in its private ledger.

Guarantee: what others do wrong fills neither memory nor disk, however long they go on.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core.step import Fault
from p2pdp.host.effects import Entropy
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import NOTE

NOTES_MAX: Final = 200  # beyond them only the counts go on


class Notes:
    def __init__(self, journal: Journal, entropy: Entropy) -> None:
        self._journal = journal
        self._entropy = entropy
        self.new: list[Fault] = []
        self.counts: dict[str, int] = {}

    def add(self, fault: Fault, *, again: bool = False) -> None:
        """Counts a fault and notes it, unless a replay tells of it `again`."""
        self.counts[fault.kind] = self.counts.get(fault.kind, 0) + 1
        if again:
            return
        self.new.append(fault)
        journal = self._journal
        if sum(self.counts.values()) <= NOTES_MAX and not (journal.closed or journal.private_closed):
            event = len(journal.stored()) if journal.replaying else journal.count
            journal.append_private(NOTE, (event,), fault.kind.encode(), self._entropy.salt())

    def take(self, faults: list[Fault]) -> None:
        """Adds all of them, and empties the list."""
        for fault in faults:
            self.add(fault)
        faults.clear()

    def take_new(self) -> tuple[Fault, ...]:
        """The faults since it was last asked."""
        new, self.new = tuple(self.new), []
        return new
