"""One user's view of the routes of tokens, from the public parts of its own ledger: when, from whom, to whom.

Where a user's ledger is whole, nothing else that it received depends on a token's route. `put_out` says whom bootstrap
excluded: while a user is gone, tokens do not move as if everybody could be chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from p2pdp.core.ids import BOOTSTRAP, Peer, is_user
from p2pdp.core.messages import OUT, TOKEN, TOTAL, Exclusion, Item
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Contents, other_end, packed_message, packed_type, public_message


class Visit(NamedTuple):
    """A contribution at `step`. None: no user had the token before, or after."""

    step: int
    came_from: Peer | None
    went_to: Peer | None


@dataclass
class TokenRoutes:
    """The visits of each token to one user, in order, and to whom that user sent tokens that it only began."""

    visits: list[list[Visit]] = field(default_factory=list)
    began_at: dict[int, Peer] = field(default_factory=dict)


def token_routes(user: Peer, contents: Contents, tokens: int) -> TokenRoutes:
    """Return what a user saw, by its ledger or skeleton, which must be consistent (`auditor.verify`) and closed."""
    came: list[dict[int, Peer | None]] = [{} for _ in range(tokens)]
    went: list[dict[int, Peer | None]] = [{} for _ in range(tokens)]
    began: dict[int, Peer] = {}
    for record in contents.records:
        if record.kind not in (RECEIVED, OWN, SENT):
            continue
        message = public_message(record)
        if message.type not in (TOKEN, TOTAL):
            continue
        item, step = Item(*message.fields)
        other = user if record.kind == OWN else other_end(record)
        if record.kind != RECEIVED and step > 1:
            went[item][step - 1] = other if is_user(other) else None
        if record.kind == SENT and step == 1:
            began[item] = other
        if record.kind != SENT:
            came[item][step] = other if step > 1 else None
    visits = [
        [Visit(step, before[step], after.get(step)) for step in sorted(before)]
        for before, after in zip(came, went, strict=True)
    ]
    return TokenRoutes(visits, began)


def put_out(views: Mapping[Peer, Contents]) -> set[Peer]:
    """Return who was excluded, before the result or after it, by bootstrap's ledger, or else by all ledgers at hand.

    Who was excluded after the result may have been gone for long before: then tokens went by it without being lost.
    """
    if BOOTSTRAP in views:
        return _named(views[BOOTSTRAP], SENT)
    return set().union(*(_named(contents, RECEIVED) for contents in views.values()))


def _named(contents: Contents, kind: int) -> set[Peer]:
    beginning = packed_type(OUT)
    found: Iterable[Peer] = (
        Exclusion(*public_message(record).fields).peer
        for record in contents.records
        if record.kind == kind and packed_message(record).startswith(beginning)
    )
    return set(found)
