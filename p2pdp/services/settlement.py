"""Who tells the truth about an item whose holder is gone: claims, receipts, and what follows from them.

A *claim* says: I passed this item, at this step, to a peer who is out. A *receipt* says: I got this item, at
this step, from a peer who is out. From its last live claimant on, an item went from one holder to the next;
the first live one among these got it from a peer who is out, so it has a receipt for a later step. Hence an
item is lost exactly if no live peer has a receipt later than the last live claim, and then only that
claimant may send it again. Nobody who is out counts, neither as claimant nor with a receipt: what it had is
gone with it. So no item is doubled, and none that was asked about is lost while anybody alive held it.

The caller owes: every live peer that the one who is out could have passed items to has answered before
`decide` is called, and answers come in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from p2pdp.core.ids import Peer, is_user


class Verdict(Enum):
    LOST = "lost"  # send the same noised value elsewhere
    KEPT = "kept"  # it went on: stop watching
    WARD = "ward"  # you have it from a peer who is out: bootstrap is your guardian from now on


@dataclass(frozen=True, slots=True)
class Decision:
    verdict: Verdict
    peer: Peer
    item: int
    step: int


class Settlement:
    def __init__(self) -> None:
        self._claims: dict[int, dict[Peer, int]] = {}  # item -> claimant -> step
        self._receipts: dict[int, dict[Peer, int]] = {}  # item -> receiver -> highest step
        self._unanswered: set[tuple[int, Peer]] = set()  # claims that were made since the last decision
        self._wards: dict[int, int] = {}  # item -> step at which its holder was told who its guardian is

    def claim(self, peer: Peer, item: int, step: int) -> None:
        self._claims.setdefault(item, {})[peer] = step
        self._unanswered.add((item, peer))

    def receipt(self, peer: Peer, item: int, step: int) -> None:
        held = self._receipts.setdefault(item, {})
        held[peer] = max(step, held.get(peer, step))

    def decide(self, out: Collection[Peer]) -> list[Decision]:
        """What each live claimant is to be told, and whom bootstrap watches over from now on."""
        decisions: list[Decision] = []
        for item in sorted(self._claims.keys() | self._receipts.keys()):
            claims = _live(self._claims.get(item, {}).items(), out)
            receipts = _live(self._receipts.get(item, {}).items(), out)
            received, receiver = receipts[-1] if receipts else (-1, None)
            for step, claimant in claims:
                lost = (step, claimant) == claims[-1] and received <= step
                if lost:
                    del self._claims[item][claimant]
                    decisions.append(Decision(Verdict.LOST, claimant, item, step))
                elif (item, claimant) in self._unanswered:
                    decisions.append(Decision(Verdict.KEPT, claimant, item, step))
            went_on = receiver is not None and (not claims or received > claims[-1][0])
            if went_on and receiver is not None and is_user(receiver) and received > self._wards.get(item, -1):
                self._wards[item] = received
                decisions.append(Decision(Verdict.WARD, receiver, item, received))
        self._unanswered.clear()
        return decisions


def _live(entries: Iterable[tuple[Peer, int]], out: Collection[Peer]) -> list[tuple[int, Peer]]:
    return sorted((step, peer) for peer, step in entries if peer not in out)
