"""The true contributions of a user, from its own ledgers: read after an attack, and only to measure its error."""

from __future__ import annotations

from typing import Any, Final

from p2pdp.ledger import records
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import Contents

ONLY_PLACE: Final = (0, 0)  # the place of a user's only contribution
Truths = dict[tuple[int, int], tuple[Any, Any]]
"""By item and step: a contribution without noise and with it, in steps of the grid."""


def only_contribution(value: Any, contents: Contents, private: bytes) -> Truths:
    """Return the one contribution of a user whose first draw, if it draws anything, is its noise."""
    drawn = next((record for record in contents.records if record.kind == records.DRAWN), None)
    noise: Any = 0 if drawn is None else Journal(private=private).drawn(drawn.body.pool, drawn.body.offset)
    return {ONLY_PLACE: (value, value + noise)}
