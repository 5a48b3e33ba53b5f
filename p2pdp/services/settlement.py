"""Who has an item whose holder was excluded: claims, receipts, and what follows from them.

A *claim* says: I passed this item, at this step, to a peer who is out. A *receipt* says: I got this item, at
this step, from a peer who is out. From its last live claimant on, an item went from one holder to the next;
the first live one among these got it from a peer who is out, so it has a receipt for a later step. Hence an
item is lost exactly if no live peer has a receipt later than the last live claim, and then only that
claimant may send it again. Nobody who is out counts, neither as claimant nor with a receipt: what it had is
gone with it. So no item is doubled, and none that was asked about is lost while anybody alive held it.

The caller owes: every live peer that the one who is out could have passed items to has answered before
`lost` is called, and answers come in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from p2pdp.core.ids import Peer


class Lost(NamedTuple):
    """The claimant is to send the item elsewhere."""

    claimant: Peer
    item: int
    step: int


class Settlement:
    def __init__(self) -> None:
        self._claims: dict[int, dict[Peer, int]] = {}  # item -> claimant -> step
        self._receipts: dict[int, dict[Peer, int]] = {}  # item -> receiver -> highest step

    def claim(self, peer: Peer, item: int, step: int) -> None:
        self._claims.setdefault(item, {})[peer] = step

    def receipt(self, peer: Peer, item: int, step: int) -> None:
        held = self._receipts.setdefault(item, {})
        held[peer] = max(step, held.get(peer, step))

    def lost(self, out: Collection[Peer]) -> list[Lost]:
        """All items that nobody alive has; each is told once, and their claims are gone then."""
        found: list[Lost] = []
        for item, claims in sorted(self._claims.items()):
            live = [(step, peer) for peer, step in claims.items() if peer not in out]
            step, claimant = max(live, default=(0, None))
            receipts = [at for peer, at in self._receipts.get(item, {}).items() if peer not in out]
            if claimant is not None and max(receipts, default=-1) <= step:
                del claims[claimant]
                found.append(Lost(claimant, item, step))
        return found
