"""What is at hand of a run: the signed roster, and the ledgers or skeletons of those who took part.

`files/` reads it from a folder or an exported file; `audit/` judges it. Nothing here is trusted yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.roster import Roster


@dataclass(frozen=True)
class Evidence:
    spec: Spec
    spec_digest: bytes  # recomputed from the spec at hand, to be compared with the signed one
    roster: Roster
    views: dict[Peer, bytes] = field(repr=False)  # ledger or skeleton bytes; absent where there is none
    private: dict[Peer, bytes] = field(repr=False, default_factory=dict)
    own: Peer | None = None  # set where only this node's part of a run is at hand
