"""A simulated disk: the two ledger files of one process, and what can happen to them."""

from __future__ import annotations

from p2pdp.ledger.records import LEDGER_MAGIC, whole_length


class Disk:
    def __init__(self) -> None:
        self.view = bytearray()
        self.private = bytearray()
        self._ends: list[tuple[int, int]] = []  # after each view record: lengths of view and private

    @property
    def view_records(self) -> int:
        return len(self._ends)

    def append_view(self, data: bytes) -> None:
        self.view += data
        if data != LEDGER_MAGIC:
            self._ends.append((len(self.view), len(self.private)))

    def roll_back(self, records: int) -> None:
        """Brings back an earlier state, as a restored backup would."""
        if records < len(self._ends):
            view, private = self._ends[records - 1] if records else (0, 0)
            del self.view[view:], self.private[private:], self._ends[records:]

    def tear(self, torn_bytes: int) -> None:
        """Leaves the first bytes of what would have been the next record."""
        self.view += b"\x93\xc4\x20"[:torn_bytes]

    def cut_torn_tails(self) -> None:
        for data in (self.view, self.private):
            if data:
                del data[whole_length(bytes(data)) :]
