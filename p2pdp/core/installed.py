"""Extensions of this package by other installed ones, by entry points such as those of the group `p2pdp.protocols`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

_PACKAGE: Final = __name__.partition(".")[0]


@cache
def installed(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of the package's group of this kind, by name; packages are looked through once."""
    return {entry.name: entry for entry in entry_points(group=f"{_PACKAGE}.{kind}")}
