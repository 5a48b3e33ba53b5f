"""A user's input to network shuffling: each value is randomized and sealed to the curator at the same moment.

So no relay and no ledger of a relay ever holds anything but a sealed report. A report and a dummy have the same
length. Both carry a name inside, which nobody but the curator can read and no message tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from p2pdp.mechanisms.reporting.contract import Randomizer

NAME_BYTES: Final = 7
SEAL_BYTES: Final = 48  # a sealed box is so much longer than what is in it

Seal = Callable[[bytes, bytes], bytes]  # text, 32 secret bytes that serve once -> what only the curator opens


class ReportInputs:
    """`seal` is missing as long as nobody has said whose key to seal to."""

    def __init__(self, values: Sequence[Any], randomizer: Randomizer, seal: Seal | None = None) -> None:
        self._values = values
        self._randomizer = randomizer
        self._seal = seal

    def sealed_with(self, seal: Seal) -> ReportInputs:
        return ReportInputs(self._values, self._randomizer, seal)

    def sealed(self, name: int, randomness: Any, seed: Any, place: int = 0) -> bytes:
        """Return the report of the value at this place."""
        return self._close(name, self._randomizer.report(self._values[place], randomness), seed)

    def sealed_dummy(self, name: int, randomness: Any, seed: Any) -> bytes:
        return self._close(name, self._randomizer.dummy(randomness), seed)

    def _close(self, name: int, report: bytes, seed: Any) -> bytes:
        assert self._seal is not None
        return self._seal(name.to_bytes(NAME_BYTES, "big") + report, seed.astype("<i8").tobytes())

    def __repr__(self) -> str:
        return "ReportInputs()"


def sealed_bytes(report_bytes: int) -> int:
    """Return how long a report is for relays."""
    return NAME_BYTES + report_bytes + SEAL_BYTES


def open_report(text: bytes, report_bytes: int) -> tuple[int, bytes] | None:
    """Return the name and the report inside, or None if there is none."""
    if len(text) != NAME_BYTES + report_bytes:
        return None
    return int.from_bytes(text[:NAME_BYTES], "big"), text[NAME_BYTES:]
