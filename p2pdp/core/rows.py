"""The public fact of how many rows each user holds, in runs whose unit is a record.

Each user states its own number and signs it together with its key of the run; bootstrap signs all of them as one fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

ROWS: Final = "rows"  # the name of the fact
ROWS_MAX: Final = 10**9  # of one user
ROWS_BYTES: Final = 8

Rows = tuple[int, ...]

_FORM: Final = re.compile(r"[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*")


def rows_text(counts: Sequence[int]) -> str:
    """Return the fact, in the one form that it has."""
    return ",".join(map(str, counts))


def rows_in(facts: Mapping[str, object]) -> Rows | None:
    """Return the number of rows of each user; None where the facts have none. Raise `ValueError` for another form."""
    text = facts.get(ROWS)
    if text is None:
        return None
    if not isinstance(text, str) or _FORM.fullmatch(text) is None:
        raise ValueError("the fact rows must be a number for each user, joined by commas")
    counts = tuple(map(int, text.split(",")))
    if max(counts) > ROWS_MAX:
        raise ValueError(f"no user may have more than {ROWS_MAX:,} rows")
    return counts


def count_problem(count: int, most: int = ROWS_MAX) -> str | None:
    """Return why no user can have this number of rows; None where one can."""
    return None if 1 <= count <= most else f"a user of this run has 1 to {most:,} rows"
