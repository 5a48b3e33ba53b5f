"""The search for items whose holder was excluded: claims, receipts, and what follows from them.

A *claim* says: I passed this item, at this step, to a peer who is out. A *receipt* says: I got this item, at
this step, from a peer who is out. From its last live claimant on, an item went from one holder to the next;
the first live one among these got it from a peer who is out, so it has a receipt for a later step. Hence an
item is lost exactly if no live peer has a receipt later than the last live claim, and then only that
claimant may send it again. Nobody who is out counts, neither as claimant nor with a receipt: what it had is
gone with it. So no item is doubled, and none that was asked about is lost while anybody alive held it.

Reports of network shuffling go by another number at every hop. A receipt says what the item was before, so claims and
receipts of one report are put together as far as those who received it have answered. Where two in a row were
excluded before the second had answered, a report may be sent again that somebody still has; the curator counts it once.

The caller owes: every live peer that the one who is out could have passed items to has answered before
`lost` is called, and answers come in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from p2pdp.core.ids import Peer


class Lost(NamedTuple):
    """An order: the claimant is to send the item elsewhere."""

    claimant: Peer
    item: int
    step: int


class Settlement:
    def __init__(self) -> None:
        self._claims: dict[int, dict[Peer, int]] = {}  # item -> claimant -> step
        self._receipts: dict[int, dict[Peer, int]] = {}  # item -> receiver -> highest step
        self._before: dict[int, int] = {}  # item -> what it was a hop before

    def claim(self, peer: Peer, item: int, step: int) -> None:
        self._claims.setdefault(item, {})[peer] = step

    def receipt(self, peer: Peer, item: int, step: int, before: int) -> None:
        held = self._receipts.setdefault(item, {})
        held[peer] = max(step, held.get(peer, step))
        if before != item:
            self._before[item] = before

    def lost(self, out: Collection[Peer]) -> list[Lost]:
        """Return all items that nobody alive has, each once; their claims are gone then."""
        claims: dict[int, list[tuple[int, Peer, int]]] = {}
        for item, by_peer in self._claims.items():
            live = [(step, peer, item) for peer, step in by_peer.items() if peer not in out]
            claims.setdefault(self._first(item), []).extend(live)
        receipts: dict[int, int] = {}
        for item, by_peer in self._receipts.items():
            first, steps = self._first(item), [step for peer, step in by_peer.items() if peer not in out]
            receipts[first] = max(receipts.get(first, -1), *steps, -1)
        found: list[Lost] = []
        for first, claimed in sorted(claims.items()):
            if claimed and receipts.get(first, -1) <= max(claimed)[0]:
                step, claimant, item = max(claimed)
                del self._claims[item][claimant]
                found.append(Lost(claimant, item, step))
        return found

    def _first(self, item: int) -> int:
        """Return an item's earliest known hop; what peers say may go in a circle."""
        passed = {item}
        while (before := self._before.get(item)) is not None:
            if before in passed:
                return min(passed)
            passed.add(before)
            item = before
        return item
