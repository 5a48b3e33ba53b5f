"""What a lock of pip pins."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from tests.support.sources import TOP

DEPLOY = TOP / "deploy"
HASH = r"    --hash=sha256:[0-9a-f]{64}(?: \\)?\n"
PINNED = re.compile(rf"^([\w.-]+)==(\S+)(?: ; [^\\]*?)? \\\n(?:{HASH})+", re.MULTILINE)


def locked(name: str) -> dict[str, list[str]]:
    """The versions of each package, for one interpreter or another."""
    text = (DEPLOY / name).read_text()
    found: dict[str, list[str]] = {}
    for match in PINNED.finditer(text):
        found.setdefault(canonicalize_name(match[1]), []).append(match[2])
    lines = len(re.findall(r"^\w", text, re.MULTILINE))
    assert sum(map(len, found.values())) == lines, "all lines are pinned with hashes"
    return found
