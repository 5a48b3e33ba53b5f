"""Check a roster: that the bootstrap that is trusted signed it, and that everybody in it is somebody else."""

from __future__ import annotations

from collections.abc import Iterator

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.crypto.roster import Roster, RosterEntry, RosterError


def roster_problems(roster: Roster, root: bytes | None) -> Iterator[str]:
    """Yield what is wrong with a roster; without `root`, the key of the trusted bootstrap, its own is believed."""
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
    yield from enumerate(roster.entries)


def _name(peer: Peer) -> str:
    return f"user {peer}" if peer >= 0 else str(peer_name(peer))
