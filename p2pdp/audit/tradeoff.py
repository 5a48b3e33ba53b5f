"""What noise on messages would buy, and which amount of it is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NEXT_TO_NOTHING: Final = 0.01
"""By how much of itself a standard error may rise for noise that is recommended."""


@dataclass(frozen=True)
class Tradeoff:
    """Of one amount of noise on messages; leaks in units of what a user's own noised value tells."""

    ratio: float
    message_sigma: float
    leak_max: float
    leak_far_max: float | None  # of users who are no neighbours; None if there are none
    leak_mean: float
    epsilon_max: float
    epsilon_mean: float  # of a pair that is told the mean
    standard_error: float


def recommended(tradeoff: Sequence[Tradeoff]) -> Tradeoff | None:
    """Return the most noise whose standard error is next to that without; None where none costs so little."""
    without = tradeoff[0].standard_error
    cheap = [one for one in tradeoff if one.ratio > 0.0 and one.standard_error <= (1.0 + NEXT_TO_NOTHING) * without]
    return max(cheap, key=lambda one: one.ratio, default=None)
