"""Whether the public parts of records have the form that their kind asks for.

Whoever holds a node's key can sign anything. What passes here has all the parts that verification and replay
look at, of the right types, so that neither can be made to fail otherwise than by saying what is wrong.
"""

from __future__ import annotations

from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import MessageTable
from p2pdp.ledger.bodies import is_whole
from p2pdp.ledger.messages import carries_message, carries_value, public_message
from p2pdp.ledger.records import Contents, LedgerError, Record


def malformed(contents: Contents, table: MessageTable, peer: Peer, *, view: bool) -> int | None:
    """Return the position of the first record that lacks what its kind, or the type of its message, asks for."""
    of_a_user = view and is_user(peer)
    for position, record in enumerate(contents.records):
        if not is_whole(record.kind, record.body, of_a_user=of_a_user) or not _message_fits(record, table):
            return position
    return None


def _message_fits(record: Record, table: MessageTable) -> bool:
    if not carries_message(record):
        return True
    try:
        message = public_message(record)
    except LedgerError:
        return False
    return table.fits(message, has_value=carries_value(record))
