"""Specs and faults of runs with crashes."""

from __future__ import annotations

from typing import Any

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from tests.support.fault_worlds import ring, walk

RING, COMPLETE, PATH, REGULAR = ring(3, 2), walk(4, 8), walk(5, 8, "path"), walk(5, 8, "regular")
LOSSY: dict[str, Any] = {"loss": 0.1, "duplication": 0.1, "jitter_s": 0.02}


def everybody(*texts: str) -> list[tuple[str, Peer]]:
    """Each process of each of these worlds."""
    found = []
    for text in texts:
        nodes = int(text.partition("nodes = ")[2].split()[0])
        found += [(text, peer) for peer in (BOOTSTRAP, CURATOR, *range(nodes))]
    return found
