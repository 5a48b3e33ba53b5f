"""A peer's files: two ledgers, pieces of what is on its way, a log of received frames, small files replaced whole.

Guarantee: what `Disk.append` was given is with the operating system when it returns, so it survives `kill -9`;
with `power` it is on the disk. A torn tail is cut off when a ledger is opened again, and a damaged one is refused.
Small files are whole or absent, and on the disk before they are used unless it is said that they need not survive a
power cut. Pieces may get lost, and nothing waits for them. All files have mode 0600. A full disk raises `NotReady`
unless it has no room for a piece: the process ends, and can be resumed when there is space.

The caller owes: after an error nothing more is appended, or a torn record would not be the last.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import KEY_BYTES
from p2pdp.files.folder import WIRE_FILE, make_private
from p2pdp.files.ledgers import LedgerFile
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import CLOSED, DamagedLedger, LedgerError, Record
from p2pdp.ledger.stored import stream, whole_end
from p2pdp.peer.pieces import SHELF_BYTES_MAX
from p2pdp.peer.tap import wire_line

PIECES: Final = ".pieces"  # how names of files end that hold pieces of values on their way


class Disk:
    def __init__(self, folder: Path, *, power: bool, trace_wire: bool = False) -> None:
        """Open the ledgers; with `trace_wire` also `wire.jsonl`, which `tap` fills."""
        self._power = power
        self._folder = folder
        self._descriptors: dict[str, int] = {}
        self.stored: dict[str, LedgerFile] = {}
        try:
            make_private(folder)
            for name in (VIEW, PRIVATE):
                self._open(name)
            if power:
                sync_folder(folder)
        except OSError as error:
            raise NotReady(f"{folder}: {error.strerror}") from None
        self.tap = WireLog(folder) if trace_wire else None
        self.shelf = PieceFiles(folder)

    def _open(self, name: str) -> None:
        path = self._folder / f"{name}.ledger"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        size = os.fstat(descriptor).st_size
        try:
            whole = whole_end(LedgerFile(path, size))
        except LedgerError as error:
            raise _unusable(path, error) from None
        if whole < size:
            os.ftruncate(descriptor, whole)
        self._descriptors[name] = descriptor
        self.stored[name] = LedgerFile(path, whole)

    def make_durable(self) -> None:
        """Behave from now on as if opened with `power`."""
        self._power = True
        sync_folder(self._folder)

    def append(self, writes: Sequence[tuple[str, bytes]]) -> None:
        """Write in order; consecutive writes to the same file go there together."""
        if len(writes) == 1:
            self.write(*writes[0])
            return
        for name, neighbours in groupby(writes, key=itemgetter(0)):
            self.write(name, b"".join([data for _, data in neighbours]))

    def write(self, name: str, data: bytes) -> None:
        descriptor, written = self._descriptors[name], 0
        try:
            written = os.write(descriptor, data)
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if self._power:
                _to_disk(descriptor, getattr(os, "fdatasync", os.fsync))
        except OSError as error:
            with suppress(OSError):  # otherwise the next start cuts the part of an entry off
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
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
    """Return whether the view ledger in this folder is closed: nothing is recorded in it any more."""
    path = folder / f"{VIEW}.ledger"
    last: Record | None = None
    try:
        file = LedgerFile(path, path.stat().st_size if path.is_file() else 0)
        if file.size and (whole := whole_end(file)):
            for _, records in stream(LedgerFile(path, whole)):
                last = records[-1]
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None
    except LedgerError as error:
        raise _unusable(path, error) from None
    return last is not None and last.kind == CLOSED


def _unusable(path: Path, error: LedgerError) -> VerificationFailed:
    what_now = ""
    if isinstance(error, DamagedLedger):
        what_now = (
            ". The disk or another program changed this file, so this node takes no further part in the run, which "
            "goes on without it where it can; an older copy of the file would not be accepted either"
        )
    return VerificationFailed(f"{path}: {error}{what_now}")


class WireLog:
    """A tap for a host that writes each received frame to `wire.jsonl`, one JSON object a line (`peer/tap.py`).

    The file names routes. It is appended to after a restart, without a line that a crash tore. Each line is with the
    operating system before its frame is acted on: what a crash undid was received all the same.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WIRE_FILE
        try:
            self._descriptor: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.ftruncate(self._descriptor, self._path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise NotReady(f"{self._path}: {error.strerror}") from None

    def __call__(self, sender: Peer, content: bytes) -> None:
        line, descriptor = wire_line(sender, content), self._descriptor
        assert descriptor is not None
        try:
            written = os.write(descriptor, line)
            while written < len(line):
                written += os.write(descriptor, memoryview(line)[written:])
        except OSError as error:
            raise NotReady(f"{self._path}: {error.strerror}") from None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class PieceFiles:
    """The shelf of a node (`peer/pieces.py`): a file for each peer of whose next value some pieces have come.

    What cannot be kept there, on a full disk say, is not kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, peer: Peer) -> Path:
        return self._folder / f"{peer:04d}{PIECES}"

    def read(self, peer: Peer) -> bytes:
        """Return what is there, if it is a file of a size that we could have written."""
        try:
            descriptor = os.open(self._path(peer), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                fits = stat.S_ISREG(found.st_mode) and found.st_size <= SHELF_BYTES_MAX
                return file.read() if fits else b""
        except OSError:
            return b""

    def write(self, peer: Peer, at: int, head: bytes, data: bytes) -> None:
        try:
            if at == 0:  # a new file, which is ours alone; what was not kept before has no sequel
                self.drop(peer)
            new = 0 if at else os.O_CREAT | os.O_EXCL
            descriptor = os.open(self._path(peer), os.O_WRONLY | new | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                os.ftruncate(descriptor, at)
                os.lseek(descriptor, at, os.SEEK_SET)
                os.writev(descriptor, (head, data))  # if it writes less, the checksum says so
            finally:
                os.close(descriptor)
        except OSError:
            self.drop(peer)

    def drop(self, peer: Peer) -> None:
        with suppress(OSError):
            self._path(peer).unlink()

    def clear(self) -> None:
        drop_pieces(self._folder)


def drop_pieces(folder: Path) -> None:
    """Remove what is left in this folder of values that never came whole, and no file of anybody else's."""
    for path in folder.glob(f"*{PIECES}"):
        if path.stem.removeprefix("-").isdecimal():
            with suppress(OSError):
                path.unlink()


def durable_secret(path: Path, *, power: bool = True) -> bytes:
    """Return the 32 secret bytes of a key: those in the file, or fresh ones that are written there."""
    try:
        if path.exists():
            secret = path.read_bytes()
            if len(secret) != KEY_BYTES:
                raise VerificationFailed(
                    f"{path}: is damaged: a key has {KEY_BYTES} bytes, and this file {len(secret)}; "
                    "put it back as it was, or leave the run without this node"
                )
            return secret
        make_private(path.parent)
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None
    secret = random_bytes(KEY_BYTES)
    write_durably(path, secret, power=power)
    return secret


def durable_token(path: Path) -> tuple[str, bool]:
    """Return a token that people pass on, from the file or fresh and written to it, and whether it is fresh."""
    try:
        return path.read_text(encoding="utf-8"), False
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}") from None
        text = random_bytes(KEY_BYTES).hex()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no text") from None
    write_durably(path, text.encode() + b"\n")
    return text, True


def write_durably(path: Path, data: bytes, *, power: bool = True) -> None:
    """Replace a small file so that it is there whole, or as it was: with `power` even if the power fails."""
    half = path.with_name(path.name + ".half")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if power:
                _to_disk(descriptor, os.fsync)
        half.replace(path)
        if power:
            sync_folder(path.parent)
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None


def _to_disk(descriptor: int, sync: Callable[[int], None]) -> None:
    """Wait until what was written is on the disk; on macOS `sync` would leave it in the disk's own memory."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        sync(descriptor)
    else:
        fcntl.fcntl(descriptor, full)


def sync_folder(folder: Path) -> None:
    """Make the names of new files as durable as their contents."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
