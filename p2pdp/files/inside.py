"""Files of a folder that somebody else made: nothing outside of it is opened, and nothing is unpacked without limit."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

from p2pdp.core.errors import VerificationFailed

# Most of a skeleton are hashes, which cannot be packed: more than this holds something else.
PACKED_TIMES_MAX: Final = 16
UNPACKED_BYTES_LEAST: Final = 1 << 24


def inside(folder: Path, path: Path) -> Path:
    """The path, unless links lead from it out of the folder."""
    try:
        leads_out = not path.resolve(strict=False).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        leads_out = True
    if leads_out:
        raise VerificationFailed(f"{path}: leads out of the folder, and nothing outside of it is read")
    return path


def unpacked(data: bytes) -> bytes:
    """What was packed with zlib, up to a limit; may raise `zlib.error`."""
    limit = max(UNPACKED_BYTES_LEAST, PACKED_TIMES_MAX * len(data))
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(data, limit)
    if not unpacker.eof or unpacker.unused_data:
        raise zlib.error("it is cut, holds more than one part, or unpacks to more than the limit")
    return content
