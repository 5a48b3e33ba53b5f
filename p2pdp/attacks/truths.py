"""The true contributions of a user, from its own ledgers: read after an attack, and only to measure its error."""

from __future__ import annotations

from typing import Any, Final

from p2pdp.core.draws import ROWS
from p2pdp.ledger import records
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import Contents

ONLY_PLACE: Final = (0, 0)  # the place of a user's only contribution
Truths = dict[tuple[int, int], tuple[Any, Any]]
"""By item and step: a contribution without noise and with it, in steps of the grid."""


def only_contribution(value: Any, contents: Contents, private: bytes) -> Truths:
    """Return the one contribution of a user whose first draw, if it draws anything, is its noise."""
    drawn = (one.body for one in contents.records if one.kind == records.DRAWN and one.body.mechanism != ROWS)
    first = next(drawn, None)
    noise: Any = 0 if first is None else Journal(private=private).drawn(first.pool, first.offset)
    return {ONLY_PLACE: (value, value + noise)}


def rows_drawn(contents: Contents, private: bytes) -> list[Any]:
    """Return the draws of which rows enter a user's contributions, in their order; empty where all rows do."""
    drawn = [one.body for one in contents.records if one.kind == records.DRAWN and one.body.mechanism == ROWS]
    journal = Journal(private=private) if drawn else None
    return [] if journal is None else [journal.drawn(body.pool, body.offset) for body in drawn]
