"""A simulated disk: the two ledger files of one process, and what can happen to them."""

from __future__ import annotations

from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import LEDGER_MAGIC, records_in, whole_length


def lines_in(data: bytes) -> int:
    """How many records an entry has; the magic line counts as one."""
    return 1 if data == LEDGER_MAGIC else records_in(data)


class Disk:
    def __init__(self) -> None:
        self.view = bytearray()
        self.private = bytearray()
        self.records = 0  # ever begun to be written, to both files together
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
        """Stores the first bytes of an entry whose writing was cut short."""
        self.records += lines_in(data)
        torn = self.view if name == VIEW else self.private
        torn += data[:kept_bytes]

    def roll_back(self, view_records: int) -> None:
        """Brings back the earliest state of so many records, as a restored backup would."""
        while len(self._ends) > 1 and self._ends[-2][0] >= view_records:
            self._ends.pop()
        _, view, private = self._ends[-1]
        del self.view[view:], self.private[private:]

    def cut_torn_tails(self) -> None:
        for data in (self.view, self.private):
            del data[whole_length(bytes(data)) :]
