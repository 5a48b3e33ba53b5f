"""A simulated disk: the two ledger files of one process, and what can happen to them."""

from __future__ import annotations

from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import LEDGER_MAGIC, whole_length


class Disk:
    def __init__(self) -> None:
        self.view = bytearray()
        self.private = bytearray()
        self.records = 0  # ever begun to be written, to both files together
        self._ends: list[tuple[int, int]] = []  # after each view record: lengths of view and private

    @property
    def view_records(self) -> int:
        return len(self._ends)

    def append(self, name: str, data: bytes) -> None:
        self.records += 1
        if name != VIEW:
            self.private += data
            return
        self.view += data
        if data != LEDGER_MAGIC:
            self._ends.append((len(self.view), len(self.private)))

    def tear(self, name: str, data: bytes) -> None:
        """Stores the first bytes of a record whose writing was cut short."""
        self.records += 1
        torn = self.view if name == VIEW else self.private
        torn += data

    def roll_back(self, view_records: int) -> None:
        """Brings back an earlier state, as a restored backup would."""
        if view_records < len(self._ends):
            view, private = self._ends[view_records - 1] if view_records else (0, 0)
            del self.view[view:], self.private[private:], self._ends[view_records:]

    def cut_torn_tails(self) -> None:
        for data in (self.view, self.private):
            del data[whole_length(bytes(data)) :]
