"""The credentials of a peer from the signed roster: its number, its keys in this run, and its possible partners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.crypto.channel import Channel, context_bytes
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.vouchers import Stamp, voucher_key
from p2pdp.ledger.records import FORMAT_VERSION


@dataclass(frozen=True)
class Credentials:
    me: Peer
    roster: Roster
    identity: Identity
    run_key: RunKey
    neighbours: tuple[Peer, ...] | None  # users it may talk to, None for all; roles may be talked to by everybody

    @cached_property
    def context(self) -> bytes:
        """Return what is bound into every message; any honest edge finds out a bootstrap that tells two stories."""
        return context_bytes(FORMAT_VERSION, self.roster.run_id, self.roster.digest, self.roster.spec_digest)

    @cached_property
    def voucher_key(self) -> bytes:
        return voucher_key(self.identity, self.context)

    def stamp(self, peer: Peer) -> Stamp:
        """Return what makes our vouchers for a peer."""
        return Stamp(self.voucher_key, peer)

    def peers(self) -> list[Peer]:
        users = range(self.roster.n) if self.neighbours is None else self.neighbours
        return [peer for peer in (BOOTSTRAP, CURATOR, *users) if peer != self.me]

    def knows(self, peer: Peer) -> bool:
        if peer == self.me:
            return False
        if peer < 0:
            return peer in (BOOTSTRAP, CURATOR)
        return peer < self.roster.n if self.neighbours is None else peer in self.neighbours

    def channel(self, peer: Peer) -> Channel:
        """Verify the peer's roster entry and make the channel, with its secret; the caller keeps it."""
        channel = Channel(self.run_key, self.roster.entry(peer).box, self.context, self.me, peer)
        channel.agree()
        return channel
