"""Ledgers that a curator makes of skeletons."""

from __future__ import annotations

from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import SKELETON
from p2pdp.core.step import Message
from p2pdp.ledger.records import LEDGER_MAGIC, OPENED, RECEIVED, SALT_BYTES, Chain
from p2pdp.wire.codec import pack_message, pack_value


def curators_ledger(*pieces: tuple[int, int, bytes]) -> bytes:
    """A ledger in which users (sender, offset, bytes) handed in these pieces."""
    chain = Chain()
    ledger = LEDGER_MAGIC + chain.append(OPENED, ("view", b"", CURATOR))
    for peer, offset, piece in pieces:
        packed = pack_message(Message(SKELETON, (offset, 6)))
        ledger += chain.append(RECEIVED, (0.0, peer, packed, bytes(16)), bytes(SALT_BYTES) + pack_value(piece))
    return ledger
