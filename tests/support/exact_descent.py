"""Steps of descent in exact rational numbers, written from their definition and not from the package's code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

_DIGITS = 60
_SCALE = 10**_DIGITS

Vector = list[Fraction]


def exactly(numbers: Any) -> Vector:
    return [Fraction(float(number)) for number in numbers]


def root(value: Fraction) -> Fraction:
    """To sixty digits."""
    return Fraction(math.isqrt(value.numerator * _SCALE**2 // value.denominator), _SCALE)


def length(vector: Sequence[Fraction]) -> Fraction:
    return root(sum((part * part for part in vector), start=Fraction(0)))


def apart(one: Sequence[Fraction], other: Sequence[Fraction]) -> float:
    return float(length([left - right for left, right in zip(one, other, strict=True)]))


def within(vector: Vector, most: Fraction) -> Vector:
    """The nearest vector that is no longer."""
    long = length(vector)
    return vector if long <= most else [part * most / long for part in vector]


def moved(model: Vector, noised: Vector, rate: float, regularization: float, radius: float | None) -> Vector:
    left = 1 - Fraction(rate) * Fraction(regularization)
    found = [left * old - Fraction(rate) * new for old, new in zip(model, noised, strict=True)]
    return found if radius is None else within(found, Fraction(radius))


def gradient(kind: str, model: Vector, features: Any, targets: Any, clip: float) -> Vector:
    """The mean over the rows of their gradients, each shortened to the clip."""
    total = [Fraction(0)] * len(model)
    for row, target in zip(features, targets, strict=True):
        one = within(_of_row(kind, model, exactly(row), Fraction(float(target))), Fraction(clip))
        total = [old + new for old, new in zip(total, one, strict=True)]
    return [part / len(features) for part in total]


def _of_row(kind: str, model: Vector, row: Vector, target: Fraction) -> Vector:
    if kind == "mean":
        return [left - right for left, right in zip(model, row, strict=True)]
    margin = sum((left * right for left, right in zip(model, row, strict=True)), start=Fraction(0))
    slope = margin - target if kind == "linear_regression" else -target / (1 + _grown(target * margin))
    return [slope * part for part in row]


def _grown(exponent: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = _DIGITS
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
