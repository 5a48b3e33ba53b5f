"""Ledgers as files that are read entry by entry, as often as needed, and never whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.reading import read_plain
from p2pdp.ledger.records import LedgerError
from p2pdp.ledger.stored import Ledger, whole_end

_IN_MEMORY_MAX: Final = 1 << 20  # a smaller file is read whole


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """A ledger as it stood when its size was taken: what is appended later is not read."""

    path: Path
    size: int

    def open(self) -> BinaryIO:
        return self.path.open("rb")


def ledger_at(path: Path) -> Ledger:
    """Return the bytes of a ledger, or of a large one its file."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
    return LedgerFile(path, size) if size > _IN_MEMORY_MAX else read_plain(path)


def cut_torn_tail(path: Path) -> None:
    """Leave the whole records of a ledger, and cut off the rest."""
    try:
        size = path.stat().st_size
        whole = whole_end(LedgerFile(path, size))
    except LedgerError as error:
        raise VerificationFailed(f"{path}: {error}; p2pdp verify says more") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
    if whole < size:
        with path.open("r+b") as file:
            file.truncate(whole)
