"""Check a roster: that the bootstrap that is trusted signed it, and that everybody in it is somebody else."""

from __future__ import annotations

from collections.abc import Iterator

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.crypto.roster import Roster, RosterEntry, RosterError


def roster_problems(roster: Roster, root: bytes | None, *, alone: bool = False) -> Iterator[str]:
    """Yield what is wrong with a roster; without `root`, the key of the trusted bootstrap, its own is believed.

    That of a node `alone` holds the entries of those to whom it talks, any other those of everybody.
    """
    if not alone and len(roster.entries) < roster.n:
        yield f"the roster holds the entries of {len(roster.entries)} of {roster.n} users: it is that of one node"
    if root is not None and roster.bootstrap.identity != root:
        yield f"the run is one of another bootstrap, whose key is {roster.bootstrap.identity.hex()}"
    try:
        roster.check(roster.bootstrap.identity)
    except RosterError as error:
        yield str(error)
    for peer, entry in _entries(roster):
        if not entry.is_signed(roster.run_id):
            yield f"the roster's entry of {_name(peer)} has no valid signature for this run"


def _entries(roster: Roster) -> Iterator[tuple[Peer, RosterEntry]]:
    yield BOOTSTRAP, roster.bootstrap
    yield CURATOR, roster.curator
    yield from zip(roster.entries.named, roster.entries, strict=True)


def _name(peer: Peer) -> str:
    return f"user {peer}" if peer >= 0 else str(peer_name(peer))
