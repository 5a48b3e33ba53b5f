"""Which tests are fast: `pytest -m fast` is for every change, the whole suite for what is to be published.

Rooms that start processes, run many worlds or draw figures are left out whole. Of the others, tests are left out that
`tests/slow.txt` names, one `path::function` a line: those that took longest when all were measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

SLOW_ROOMS: Final = ("system", "scenarios", "experiments", "campaigns")
LIST: Final = Path(__file__).parents[1] / "slow.txt"


def slow_tests() -> frozenset[str]:
    return frozenset(LIST.read_text(encoding="utf-8").split())


def in_slow_room(path: str) -> bool:
    """Whether a path below the top of the repository is in a room that is left out whole."""
    parts = path.split("/")
    return parts[0] == "tests" and parts[1:2] != [] and parts[1] in SLOW_ROOMS


def is_fast(node_id: str, slow: Collection[str]) -> bool:
    """All parameters of a function are in one tier."""
    path = node_id.partition("::")[0]
    return not in_slow_room(path) and node_id.partition("[")[0].removeprefix("tests/") not in slow
