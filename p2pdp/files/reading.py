"""The bytes and texts of input files, unpacked where a name ends in `.gz`; each error names the file."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError

UNPACKED_BYTES_MAX: Final = 1 << 30  # a few packed bytes can stand for any number of zeros


def read_plain(path: Path) -> bytes:
    """The bytes of a file as they are."""
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
    """The text of a file in UTF-8, with or without a byte-order mark; line ends stay as they are."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not a text file in UTF-8.") from None
