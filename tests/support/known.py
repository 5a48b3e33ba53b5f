"""Reads the known answers beside it, and damages bytes in every way that a test should try.

The answers were made without p2pdp's own code: by hand, with hashlib, with NaCl's high-level classes,
with another Ed25519, or taken from the RFC that they name. Files with `_bad_` hold what must be refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def known(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).parents[1] / "vectors" / f"{name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def names(name: str) -> list[str]:
    return [row["name"] for row in known(name)]


def flips(data: bytes) -> Iterator[bytes]:
    """The bytes with one bit turned, for each bit."""
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        yield bytes(flipped)


def cuts(data: bytes) -> Iterator[bytes]:
    """The bytes cut short at each length."""
    for length in range(len(data)):
        yield data[:length]
