"""Contributions of runs whose unit is a record: each is the sum of all rows of a user, of which one may be replaced.

How many rows each user has is public (`core/rows.py`). Replacing one row moves the sum as far as replacing the only row
of a user would, so noise does not grow with the number of rows, and the error of a mean falls with the number of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from p2pdp.core.claims import Unit
from p2pdp.core.ids import Peer
from p2pdp.core.rows import Rows, rows_in
from p2pdp.core.spec import Spec
from p2pdp.mechanisms.grid import Grid


@dataclass(frozen=True, slots=True)
class Records:
    """The rows that each user has stated; None before they have."""

    rows: Rows | None

    @property
    def most(self) -> int:
        """Return how many rows a user has at most, which sums have to have room for."""
        return 1 if self.rows is None else max(self.rows)

    @property
    def alike(self) -> int | None:
        """Return how many rows every user has, if all have equally many."""
        return None if self.rows is None or min(self.rows) < max(self.rows) else self.rows[0]

    def of(self, users: Iterable[Peer]) -> int:
        """Return how many rows these users have together; 0 if that is not known yet."""
        return 0 if self.rows is None else sum(self.rows[user] for user in users)

    @property
    def total(self) -> int:
        return 0 if self.rows is None else sum(self.rows)

    def per_row(self, absent: Iterable[Peer] = ()) -> float | None:
        """Return by what a mean over users, but for the absent, is multiplied to become one over their rows."""
        if self.rows is None:
            return None
        left = set(range(len(self.rows))) - set(absent)
        return len(left) / self.of(left)

    def spread(self, low: float, high: float) -> float:
        """Return how far the sums of two users can be apart, if each row is within these bounds."""
        if self.rows is None:
            return high - low
        return max(rows * high for rows in self.rows) - min(rows * low for rows in self.rows)


def records_of(spec: Spec, facts: Mapping[str, object]) -> Records | None:
    """Return what users have stated, where the unit is a record; None where it is a user."""
    return Records(rows_in(facts)) if spec.privacy.unit == Unit.RECORD else None


def sum_on_grid(grid: Grid, rows: Any) -> Any:
    """Return the sum of rows, each of which was brought onto the grid by itself: a number, or one for each column."""
    return grid.to_grid(rows).sum(axis=0)


def counts_of(categories: Iterable[int], kinds: int) -> Any:
    """Return how many rows are in each category."""
    import numpy as np

    return np.bincount(np.asarray(categories, dtype=np.int64), minlength=kinds)
