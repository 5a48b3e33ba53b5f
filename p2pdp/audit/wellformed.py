"""Whether the public parts of records have the form that their kind asks for.

Whoever holds a node's key can sign anything. What passes here has all the parts that verification and replay
look at, of the right types, so that neither can be made to fail otherwise than by saying what is wrong.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.bodies import is_whole
from p2pdp.ledger.messages import carries_message, public_message
from p2pdp.ledger.records import Contents, LedgerError, Record

EXCLUSION: Final = "excluded"  # what bootstrap publishes when somebody is out

# The first fields of each message that counts here; further fields are free.
_FIELDS: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys((messages.BEGIN, messages.TOKEN, messages.TOTAL, messages.LOST), (int, int)),
    messages.RELAY: (int, int, int),
    messages.REPORT: (int, int),
    messages.OPENED_REPORT: (int,),
    messages.MARK: (int,),
    **dict.fromkeys((messages.OUT, EXCLUSION), (int, bytes)),
    messages.HEAD: (bytes,),
    messages.SKELETON: (int, int),
    **dict.fromkeys((messages.EXCHANGE, messages.SKIPPED), (int,)),
    messages.ACTIVATIONS: (int, int, list),
    messages.SILENT: (int,),
}


def malformed(contents: Contents, peer: Peer, *, view: bool) -> int | None:
    """The position of the first record that lacks what its kind asks for."""
    of_a_user = view and is_user(peer)
    for position, record in enumerate(contents.records):
        if not is_whole(record.kind, record.body, of_a_user=of_a_user) or not _message_is_whole(record):
            return position
    return None


def _message_is_whole(record: Record) -> bool:
    if not carries_message(record):
        return True
    try:
        message = public_message(record)
    except LedgerError:
        return False
    return _fits(message.fields, _FIELDS.get(message.type, ()))


def _fits(parts: tuple[Any, ...], wanted: tuple[type[Any], ...]) -> bool:
    """Return whether the first parts have exactly these types, since a truth value would pass for a number."""
    return tuple(map(type, parts[: len(wanted)])) == wanted
