"""The examples of a user: rows of features with a target each, checked once and then unchangeable.

Guarantee: `Examples` holds finite numbers, every row of features is no longer (L2) than `norm_max` where that is
given, and neither its text nor any error shows a value. `norm_max` comes from what is public (a spec), never from
the rows. `clipped` counts the numbers that were moved into their bounds; it depends on the data and is for their
owner only. `test` are rows of the same user that are kept out of learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError

_ROUNDING = 1.0 + 1e-9  # of a row that was scaled to a length


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Examples:
    """`features` has a row an example, `targets` a number (0 where the task has none)."""

    features: Floats
    targets: Floats
    norm_max: float | None
    clipped: int = 0
    test: Examples | None = None

    def __post_init__(self) -> None:
        features, targets = self.features, self.targets
        if features.ndim != 2 or targets.shape != features.shape[:1]:
            raise UsageError("Examples must be a table of features and a target for each of its rows.")
        if any(part.dtype != np.float64 or part.flags.writeable for part in (features, targets)):
            raise UsageError("Examples must be read-only float64 arrays; use examples_of() to make them.")
        if not (np.isfinite(features).all() and np.isfinite(targets).all()):
            raise UsageError("Examples must consist of finite numbers.")
        if self.norm_max is not None and len(features):
            longest = float(np.sqrt(np.einsum("ij,ij->i", features, features).max()))
            if longest > self.norm_max * _ROUNDING:
                raise UsageError("Examples must not be longer than the bound that they were declared with.")

    @property
    def rows(self) -> Floats:
        return self.features

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Examples(shape={self.features.shape})"


def examples_of(
    features: npt.ArrayLike,
    targets: npt.ArrayLike,
    norm_max: float | None,
    clipped: int = 0,
    test: Examples | None = None,
) -> Examples:
    """Return copies that nobody can change any more."""
    table, column = np.array(features, dtype=np.float64), np.array(targets, dtype=np.float64)
    table.setflags(write=False)
    column.setflags(write=False)
    return Examples(table, column, norm_max, clipped, test)
