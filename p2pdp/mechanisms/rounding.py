"""The checks and upward roundings that the mechanisms share.

Guarantee: the functions ending in `_upper` never return less than the exact value for
the floats they are given, and return the exact value itself where a float can hold it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from p2pdp.core.errors import UsageError


def positive(name: str, value: float) -> float:
    """Return the value itself; anything but a finite number above zero is refused by name."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} must be a finite number above 0.")
    return value


def inside(name: str, value: float) -> float:
    """Return the value itself; anything but a number between 0 and 1, both excluded, is refused by name."""
    if not 0.0 < value < 1.0:
        raise UsageError(f"{name} must be a number between 0 and 1.")
    return value


def whole(name: str, value: object, least: int) -> int:
    """Return the value itself; anything but a whole number of at least `least` is refused by name."""
    if not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}.")
    return value


def ratio_upper(numerator: float, denominator: float) -> float:
    """Return a quotient of positive numbers, rounded up."""
    ratio = numerator / denominator
    if math.isfinite(ratio) and Fraction(ratio) * Fraction(denominator) < Fraction(numerator):
        return math.nextafter(ratio, math.inf)
    return ratio


def diagonal_upper(side: Fraction, dimensions: int) -> float:
    """Return sqrt(dimensions) * side, the diagonal of a cube, rounded up."""
    diagonal = math.sqrt(dimensions) * float(side)
    while Fraction(diagonal) ** 2 < dimensions * side**2:
        diagonal = math.nextafter(diagonal, math.inf)
    return diagonal
