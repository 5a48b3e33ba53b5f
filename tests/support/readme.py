"""The table of samples in README.md, and how its cells follow from a run's result."""

from __future__ import annotations

import re
from typing import Any

from tests.support.sources import TOP

ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)


def rows() -> dict[str, list[str]]:
    """The cells of each sample's row after its name."""
    table = (TOP / "README.md").read_text().partition("## What each protocol gives")[2].partition("\n## ")[0]
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in ROW.findall(table)}


def expected(document: dict[str, Any]) -> list[str]:
    """The cells that belong to a `result.json`."""
    curator = _largest(document["baselines"]["central"]["standard_error"])
    own, local = (
        _largest(one) for one in (document["standard_error"], document["baselines"]["local"]["standard_error"])
    )
    assert curator is not None
    return [
        f"`{document['protocol']}`",
        str(document["nodes"]),
        _epsilon(document["headline"]["epsilon"]),
        _epsilon(document["worst"]["epsilon"]),
        *("" if error is None else f"{error / curator:.2f}" for error in (own, local)),
    ]


def _epsilon(value: float | str) -> str:
    return "infinite" if isinstance(value, str) else f"{value:.2f}"


def _largest(value: float | list[float] | None) -> float | None:
    return max(value) if isinstance(value, list) else value
