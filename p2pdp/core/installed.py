"""Versions of installed libraries, and extensions of this package by other installed ones.

Extensions are entry points, such as those of the group `p2pdp.protocols`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PACKAGE: Final = __name__.partition(".")[0]


@cache
def installed(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of the package's group of this kind, by name; packages are looked through once."""
    from importlib.metadata import entry_points  # and with it email and zipfile, which no run of our own needs

    return {entry.name: entry for entry in entry_points(group=f"{_PACKAGE}.{kind}")}


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each library; "unknown" where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
