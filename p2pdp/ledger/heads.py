"""What is signed beside rosters: the end of a ledger, and the exclusion of a peer."""

from __future__ import annotations

from typing import Final

from p2pdp.core.ids import Peer

HEAD_LABEL: Final = "p2pdp ledger head"
EXCLUSION_LABEL: Final = "p2pdp exclusion"


def head_parts(role: str, run_id: bytes, peer: Peer, count: int, head: bytes) -> tuple[bytes, ...]:
    """Role (view or private), run, peer, and number and hash of all records before the closing one."""
    return role.encode(), run_id, peer.to_bytes(4, "big", signed=True), count.to_bytes(8, "big"), head
