"""Round numbers for axes and colours.

A scale is linear from 0 where that shows something, and logarithmic where the values differ by more than a
factor of a hundred. Infinite values have a place of their own beside every scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_SPREAD_MAX: Final = 100.0
_LEVELS_MAX: Final = 9
_SMALLEST: Final = 1e-300  # smaller ones count as 0, and larger ones than the next stand at the end of the scale
_LARGEST: Final = 1e300
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


def round_step(span: float, parts: int) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that covers the span in so many parts."""
    rough = span / parts
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


@dataclass(frozen=True)
class Scale:
    """`edges` ascend; on a linear scale they are evenly spaced, on a logarithmic one they are powers."""

    edges: tuple[float, ...]
    logarithmic: bool

    def place(self, value: float) -> float:
        """Where a finite value stands, 0 at the first edge and 1 at the last; kept within."""
        low, high = self.edges[0], self.edges[-1]
        if self.logarithmic:
            part = math.log(value / low) / math.log(high / low) if value > low else 0.0
        else:
            part = (value - low) / (high - low)
        return min(1.0, max(0.0, part))


def scale_of(values: Iterable[float], parts: int = 5) -> Scale:
    """A scale that holds all these finite values of at least 0.

    Whether it is logarithmic, the lowest tenth of the values does not decide: a few small ones may lie close to 0.
    """
    given = sorted(min(value, _LARGEST) for value in values if value > _SMALLEST) or [1.0]
    low, high = given[0], given[-1]
    if high / given[len(given) // 10] > _SPREAD_MAX:
        return Scale(tuple(_powers(max(low, high * 1e-9), high, parts)), logarithmic=True)
    step = round_step(high, parts)
    return Scale(tuple(step * part for part in range(math.ceil(high / step * (1 - 1e-9)) + 1)), logarithmic=False)


def _powers(low: float, high: float, parts: int) -> list[float]:
    """Powers of ten, with 3 or with 2 and 5 times them in between where there is room, else every few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high) - 1e-9)
    for mantissas in ((1.0, 2.0, 5.0), (1.0, 3.0)):
        edges = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in mantissas]
        start = max(place for place, edge in enumerate(edges) if edge <= low * (1 + 1e-9))
        end = min(place for place, edge in enumerate(edges) if edge >= high * (1 - 1e-9))
        if end - start <= parts:
            return edges[start : end + 1]
    stride = math.ceil((last - first) / parts)
    return [10.0 ** (last - stride * back) for back in range(math.ceil((last - first) / stride), -1, -1)]


def levels_of(values: Iterable[float]) -> Scale:
    """A scale whose steps are colours; the lowest level of a logarithmic one reaches down to 0."""
    return scale_of(values, _LEVELS_MAX)


def steps(scale: Scale) -> list[tuple[float, float]]:
    """The levels from bottom to top as (above, up to)."""
    found = list(pairwise(scale.edges))
    if scale.logarithmic:
        found[0] = (0.0, found[0][1])
    return found


def colours(count: int) -> list[int]:
    """Which of the nine colours each of so many levels has, spread over the whole range."""
    if count == 1:
        return [5]
    return [round(level * (_LEVELS_MAX - 1) / (count - 1)) for level in range(count)]
