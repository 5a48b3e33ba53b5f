"""The numbers of peers: users have numbers from 0 on, the two roles have numbers below 0."""

from __future__ import annotations

from typing import Final

Peer = int

BOOTSTRAP: Final[Peer] = -1
CURATOR: Final[Peer] = -2

_ROLE_NAMES: Final = {BOOTSTRAP: "bootstrap", CURATOR: "curator"}


def peer_name(peer: Peer) -> int | str:
    """Return how JSON output names a peer: a user number, `bootstrap` or `curator`."""
    return _ROLE_NAMES.get(peer, peer)


def is_user(peer: Peer) -> bool:
    return peer >= 0
