"""The bytes and texts of input files, unpacked where a name ends in `.gz`; each error names the file.

For files of a folder that somebody else made, `inside` opens nothing outside of it, `in_folder` no pipe or device
either, and `unpacked` has a limit.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError, VerificationFailed

UNPACKED_BYTES_MAX: Final = 1 << 30  # a few packed bytes can stand for any number of zeros


def read_plain(path: Path) -> bytes:
    """Read the bytes of a file as they are."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None


def read_bytes(path: Path) -> bytes:
    packed = read_plain(path)
    if path.suffix != ".gz":
        return packed
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            content = file.read(UNPACKED_BYTES_MAX + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise UsageError(f"{path}: is not a whole gzip file.") from None
    if len(content) > UNPACKED_BYTES_MAX:
        raise UsageError(f"{path}: holds more than {UNPACKED_BYTES_MAX >> 20} MiB; unpack it first.")
    return content


def read_text(path: Path) -> str:
    """Read the text of a file in UTF-8, with or without a byte-order mark; line ends stay as they are."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not a text file in UTF-8.") from None


# Most of a skeleton are hashes, which cannot be packed: more than this holds something else.
PACKED_TIMES_MAX: Final = 16
UNPACKED_BYTES_LEAST: Final = 1 << 24


def inside(folder: Path, path: Path) -> Path:
    """Return the path, unless links lead from it out of the folder."""
    try:
        leads_out = not path.resolve(strict=False).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        leads_out = True
    if leads_out:
        raise VerificationFailed(f"{path}: leads out of the folder, and nothing outside of it is read")
    return path


def in_folder(folder: Path, name: str | Path) -> Path:
    """Return the path of a file of a folder, which need not be there; refuse what is no plain file, or outside."""
    path = inside(folder, folder / name)
    if is_there(path) and not path.is_file():
        raise VerificationFailed(f"{path}: is no file, and is not read")
    return path


def bytes_in_folder(folder: Path, name: str | Path) -> bytes:
    """Return the bytes of a file of a folder; nothing where it is not there."""
    path = in_folder(folder, name)
    return read_plain(path) if path.is_file() else b""


def unpacked(data: bytes) -> bytes:
    """Unpack bytes packed with zlib, up to a limit; may raise `zlib.error`."""
    limit = max(UNPACKED_BYTES_LEAST, PACKED_TIMES_MAX * len(data))
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(data, limit)
    if not unpacker.eof or unpacker.unused_data:
        raise zlib.error("it is cut, holds more than one part, or unpacks to more than the limit")
    return content


def others_may_read(path: Path) -> bool:
    """Return whether other accounts of this machine may read or change this file."""
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Return whether there is anything at this path, be it unreadable."""
    return os.path.lexists(path)
