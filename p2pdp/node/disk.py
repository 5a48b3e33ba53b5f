"""A peer's two ledger files: appended to with one write a call, read once at the start.

Guarantee: what `append` was given is with the operating system when it returns, so it survives `kill -9`;
with `power` it is on the disk. A torn last record is cut off when a ledger is opened again. Files have
mode 0600. A full disk raises `NotReady`: the process ends, and can go on when there is space. The caller
owes: after an error nothing more is appended, or a torn record would not be the last.
"""

from __future__ import annotations

import os
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from p2pdp.core.errors import NotReady, VerificationFailed
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import CLOSED, LedgerError, read, whole_length
from p2pdp.node.keys import sync_folder
from p2pdp.node.wire_log import WireLog


class Disk:
    def __init__(self, folder: Path, *, power: bool, trace_wire: bool = False) -> None:
        """With `trace_wire` the folder has a `wire.jsonl` besides, which `tap` fills."""
        self._power = power
        self._folder = folder
        self._descriptors: dict[str, int] = {}
        self.stored: dict[str, bytes] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in (VIEW, PRIVATE):
                self._open(name)
            if power:
                sync_folder(folder)
        except OSError as error:
            raise NotReady(f"{folder}: {error.strerror}") from None
        self.tap = WireLog(folder) if trace_wire else None

    def _open(self, name: str) -> None:
        path = self._folder / f"{name}.ledger"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        data = path.read_bytes()
        try:
            whole = whole_length(data)
        except LedgerError as error:
            raise VerificationFailed(f"{path}: {error}") from None
        if whole < len(data):
            os.ftruncate(descriptor, whole)
        self._descriptors[name] = descriptor
        self.stored[name] = data[:whole]

    def make_durable(self) -> None:
        """From now on as if it had been opened with `power`."""
        self._power = True
        sync_folder(self._folder)

    def append(self, writes: tuple[tuple[str, bytes], ...]) -> None:
        """Writes in order; neighbours that go to the same file go there together."""
        for name, neighbours in groupby(writes, key=itemgetter(0)):
            self.write(name, b"".join([data for _, data in neighbours]))

    def write(self, name: str, data: bytes) -> None:
        try:
            descriptor = self._descriptors[name]
            written = os.write(descriptor, data)
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if self._power:
                os.fdatasync(descriptor)
        except OSError as error:
            raise NotReady(f"{self._folder / name}.ledger: {error.strerror}") from None

    def read(self, name: str) -> bytes:
        return (self._folder / f"{name}.ledger").read_bytes()

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
        if self.tap is not None:
            self.tap.close()


def is_closed(folder: Path) -> bool:
    """Whether a peer's view ledger in this folder came to its end: nothing is recorded in it any more."""
    path = folder / f"{VIEW}.ledger"
    try:
        data = path.read_bytes() if path.is_file() else b""
        whole = whole_length(data)
        records = read(data[:whole]).records if whole else []
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None
    except LedgerError as error:
        raise VerificationFailed(f"{path}: {error}") from None
    return bool(records) and records[-1].kind == CLOSED
