"""Finds, from both sides, where a falling curve of delta over epsilon reaches a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

UP: Final = 1.0 + 1e-12  # more than the last digits of a result can be off
_STEPS_MAX: Final = 80
_SMALLEST: Final = 2.0**-60  # of the largest epsilon that is thought of


def crossing(
    curve: Callable[[float], float], delta: float, most: float, precision: float = 1e-9
) -> tuple[float, float]:
    """Return (low, high) with curve(low) > delta >= curve(high), within `precision` times high; (0, 0) if at 0 already.

    `most` is where the curve is known to be at most delta; it is not asked there. Every value that decides was asked
    for, so a curve that is an upper end makes `high` one, and one that is a lower end `low`, even where it is uneven.
    """
    if not curve(0.0) > delta:
        return 0.0, 0.0
    low, high, over, under = 0.0, most, math.inf, -math.inf
    while high > most * _SMALLEST:
        middle = high / 2.0
        gap = _gap(curve(middle), delta)
        if gap > 0.0:
            low, over = middle, gap
            break
        high, under = middle, gap
    return _closer(curve, delta, precision, (low, over), (high, under))


def refined(
    curve: Callable[[float], float], delta: float, high: float, most: float, share: float, precision: float
) -> float:
    """Return an epsilon below `high`, by less than this share, at which a finer curve is at most delta."""
    under = _gap(curve(high), delta)
    if under > 0.0:
        return most
    low = high * (1.0 - share)
    over = _gap(curve(low), delta)
    if over <= 0.0:
        return low
    return _closer(curve, delta, precision, (low, over), (high, under))[1]


def _gap(value: float, delta: float) -> float:
    """Return ln(value / delta), nearly straight in epsilon."""
    return math.log(value / delta) if value > 0.0 else -math.inf


def _closer(
    curve: Callable[[float], float],
    delta: float,
    precision: float,
    lower: tuple[float, float],
    upper: tuple[float, float],
) -> tuple[float, float]:
    """Close in by the Illinois method, and by halving where a logarithm is infinite."""
    (low, over), (high, under) = lower, upper
    side = 0
    for _ in range(_STEPS_MAX):
        if high - low <= precision * high:
            break
        middle = (low + high) / 2.0
        if math.isfinite(over) and math.isfinite(under):
            aimed = low + (high - low) * over / (over - under)
            margin = precision * high / 4.0
            middle = min(max(aimed, low + margin), high - margin)
        gap = _gap(curve(middle), delta)
        if gap > 0.0:
            under = under / 2.0 if side > 0 else under  # the other end has stayed for two steps
            low, over, side = middle, gap, 1
        else:
            over = over / 2.0 if side < 0 else over
            high, under, side = middle, gap, -1
    return low, high
