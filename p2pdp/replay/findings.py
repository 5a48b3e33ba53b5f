"""The findings of a replay: whose record does not follow from the records before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer, peer_name


class Finding(NamedTuple):
    """A fault in the ledger of a peer: at this record, or in the whole if that is None."""

    peer: Peer
    at: int | None
    what: str

    def __str__(self) -> str:
        place = "" if self.at is None else f", record {self.at}"
        return f"node {peer_name(self.peer)}{place}: {self.what}"


class NotFollowed(VerificationFailed):
    """Some ledgers do not follow from the protocol.

    `unjudged` are users whose records could not be replayed to their end, since they rest on those of the others.
    """

    def __init__(self, findings: Sequence[Finding], unjudged: Sequence[Peer] = ()) -> None:
        super().__init__(str(findings[0]))
        self.findings = tuple(findings)
        self.unjudged = tuple(unjudged)


def not_followed(peer: Peer, at: int | None, what: str) -> NotFollowed:
    return NotFollowed([Finding(peer, at, what)])
