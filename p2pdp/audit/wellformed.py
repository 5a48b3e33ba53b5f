"""Whether the public parts of records have the form that their kind asks for.

Whoever holds a node's key can sign anything. What passes here has all the parts that verification and replay
look at, of the right types, so that neither can be made to fail otherwise than by saying what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.messages import carries_message, public_message
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    INPUTS,
    MET,
    OPENED,
    OWN,
    POOL,
    PUBLISHED,
    RECEIVED,
    SENT,
    STARTED,
    WOKEN,
    Contents,
    LedgerError,
    Record,
)

EXCLUSION: Final = "excluded"  # what bootstrap publishes when somebody is out

_NUMBER: Final = (int, float)
_TERMS: Final = (str, _NUMBER, int, list)  # mechanism, scale, categories, shape

# The first parts of each kind of record, and of each message that counts here; further parts are free.
_BODIES: Final[dict[int, tuple[Any, ...]]] = {
    OPENED: (str, bytes, int),
    STARTED: (_NUMBER,),
    WOKEN: (_NUMBER,),
    RECEIVED: (_NUMBER, int, bytes),
    OWN: (_NUMBER, bytes),
    SENT: (int, bytes),
    PUBLISHED: (bytes,),
    DRAWN: (int, *_TERMS, int, int),
    CHOSEN: (int, int),
    MET: (int, list),
    CLOSED: (bytes,),
    INPUTS: (object, int),
    POOL: (object, int, str, *_TERMS, int),
}
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
    for position, record in enumerate(contents.records):
        if not _is_whole(record) or (view and is_user(peer) and record.kind == OPENED and not _opens_a_user(record)):
            return position
    return None


def _is_whole(record: Record) -> bool:
    if not _fits(record.body, _BODIES.get(record.kind, ())):
        return False
    if record.kind == MET and not all(type(peer) is int for peer in record.body[1]):
        return False
    if not carries_message(record):
        return True
    try:
        message = public_message(record)
    except LedgerError:
        return False
    return _fits(message.fields, _FIELDS.get(message.type, ()))


def _opens_a_user(record: Record) -> bool:
    """Roster digest, number of values, neighbours (None for all)."""
    if not _fits(record.body[3:], (bytes, int, (list, type(None)))) or record.body[4] < 1:
        return False
    return all(type(peer) is int for peer in record.body[5] or ())


def _fits(parts: Any, wanted: tuple[Any, ...]) -> bool:
    """Exact types, since a truth value would pass for a number."""
    return _types_fit(tuple(map(type, parts)), wanted)


@lru_cache(maxsize=1024)
def _types_fit(types: tuple[type, ...], wanted: tuple[Any, ...]) -> bool:
    """Remembered, because millions of records have a dozen forms between them."""
    if len(types) < len(wanted):
        return False
    return all(
        kind is object or found in (kind if isinstance(kind, tuple) else (kind,))
        for found, kind in zip(types, wanted, strict=False)
    )
