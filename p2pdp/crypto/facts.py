"""The public facts of a run that bootstrap signs with the roster: names, each once and in order, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

Fact = int | str | float


def problem_of(facts: Sequence[tuple[str, Fact]]) -> str | None:
    """Return why these cannot be the facts of a run; None where they can."""
    names = [name for name, _ in facts]
    if any(type(name) is not str for name in names) or any(first >= second for first, second in pairwise(names)):
        return "the facts of a roster must have names, each once, in order"
    for name, value in facts:
        wide = type(value) is int and not -(1 << 63) <= value < 1 << 63
        if type(value) not in (int, str, float) or wide or (type(value) is float and not isfinite(value)):
            return f"the fact {name!r} of the roster must be text, a finite number or an integer of 64 bits"
    return None
