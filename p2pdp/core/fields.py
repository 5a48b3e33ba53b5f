"""Declarations of what the fields of messages and records may hold, beside their names.

A named tuple declares its fields with types that are annotated with a `Kind`:

    class Token(NamedTuple):
        item: Natural
        step: Natural

`check_of` makes the check of its values from that, and documentation is made from `fields_of`. Types are exact, since
a truth value would pass for a number. A tuple may hold more or fewer items than it names until it was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Final, Protocol, get_type_hints

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1

Check = Callable[[Sequence[Any]], bool]


class Kind(Protocol):
    """The interface of what one field may hold; the guide shows its text, `str(kind)`."""

    def fits(self, item: Any, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of 64 bits."""

    least: int = INT_MIN
    most: int = INT_MAX

    def fits(self, item: Any) -> bool:
        return type(item) is int and self.least <= item <= self.most

    def __str__(self) -> str:
        if (self.least, self.most) == (INT_MIN, INT_MAX):
            return "whole number"
        return f"whole number from {self.least}" + ("" if self.most == INT_MAX else f" to {self.most}")


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number."""

    def fits(self, item: Any) -> bool:
        return type(item) in (int, float) and isfinite(item)

    def __str__(self) -> str:
        return "number"


@dataclass(frozen=True, slots=True)
class Bytes:
    """A byte string of at most `most` bytes, or of exactly `exactly`."""

    exactly: int | None = None
    most: int | None = None

    def fits(self, item: Any) -> bool:
        if type(item) is not bytes or (self.exactly is not None and len(item) != self.exactly):
            return False
        return self.most is None or len(item) <= self.most

    def __str__(self) -> str:
        return "bytes" if self.exactly is None else f"{self.exactly} bytes"


@dataclass(frozen=True, slots=True)
class Text:
    """Text of at most `most` characters."""

    most: int | None = None

    def fits(self, item: Any) -> bool:
        return type(item) is str and (self.most is None or len(item) <= self.most)

    def __str__(self) -> str:
        return "text"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of items that each fit `item`."""

    item: Kind
    most: int | None = None

    def fits(self, items: Any) -> bool:
        if type(items) is not list or (self.most is not None and len(items) > self.most):
            return False
        return all(map(self.item.fits, items))

    def __str__(self) -> str:
        return f"list of {self.item}" + ("" if self.most is None else f", {self.most} at most")


@dataclass(frozen=True, slots=True)
class Row:
    """A list of as many items as there are names, each of which fits `item`."""

    names: tuple[str, ...]
    item: Kind

    def fits(self, items: Any) -> bool:
        return type(items) is list and len(items) == len(self.names) and all(map(self.item.fits, items))

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that fits `item`, or None."""

    item: Kind

    def fits(self, item: Any) -> bool:
        return item is None or self.item.fits(item)

    def __str__(self) -> str:
        return f"none or {self.item}"


Natural = Annotated[int, Integer(0)]
Positive = Annotated[int, Integer(1)]
AnyInteger = Annotated[int, Integer()]
AnyNumber = Annotated[float, Number()]
AnyBytes = Annotated[bytes, Bytes()]
AnyText = Annotated[str, Text()]


def fields_of(shape: type[Any]) -> tuple[tuple[str, Kind], ...]:
    """Return the fields of a named tuple with what each may hold, in order."""
    return tuple((name, hint.__metadata__[0]) for name, hint in get_type_hints(shape, include_extras=True).items())


def check_of(shape: type[Any]) -> Check:
    """Return the check whether a sequence has exactly the fields of a named tuple, each with what it may hold."""
    tests = tuple(kind.fits for _, kind in fields_of(shape))
    count = len(tests)
    if count == 0:
        return lambda items: not items
    if count == 1:
        (only,) = tests
        return lambda items: len(items) == 1 and only(items[0])
    if count == 2:
        first, second = tests
        return lambda items: len(items) == 2 and first(items[0]) and second(items[1])

    def fits(items: Sequence[Any]) -> bool:
        if len(items) != count:
            return False
        for test, item in zip(tests, items):  # noqa: SIM110, B905 -- a hot place: as long as each other, and no generator
            if not test(item):
                return False
        return True

    return fits
