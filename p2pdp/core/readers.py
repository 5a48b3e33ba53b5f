"""Readers of single values of a spec or a configuration: each takes what TOML gave and returns what is kept.

A reader raises `Unfit` with what was expected. A truth value is not a number, a whole number may stand for a number,
infinity and NaN are refused, and every whole number has an upper limit. `described` says what a reader takes,
which of a plain function is its docstring.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final


class Unfit(Exception):
    """A value that a reader cannot take; its text says what was expected."""


Reader = Callable[[Any], Any]


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "…"?` where a known word is near, else the list of the known ones."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(names)}."


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`. Every one has an upper limit: a count may be work without end."""

    least: int
    most: int

    def __call__(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unfit("must be a whole number.")
        if value < self.least:
            raise Unfit(f"must be at least {self.least}.")
        if value > self.most:
            raise Unfit(f"must be at most {self.most:,}.")
        return value


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A finite number within limits, of which None is none."""

    above: float | None = None
    below: float | None = None
    least: float | None = None
    most: float | None = None

    def __call__(self, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unfit("must be a number.")
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if not math.isfinite(result):
            raise Unfit("must be finite.")
        if self.above is not None and result <= self.above:
            raise Unfit(f"must be above {self.above:g}.")
        if self.least is not None and result < self.least:
            raise Unfit(f"must be at least {self.least:g}.")
        if self.below is not None and result >= self.below:
            raise Unfit(f"must be below {self.below:g}.")
        if self.most is not None and result > self.most:
            raise Unfit(f"must be at most {self.most:g}.")
        return result + 0.0  # so that -0.0 and 0.0 are one value

    @property
    def text(self) -> str:
        stated = {"above": self.above, "at least": self.least, "below": self.below, "at most": self.most}
        return ", ".join(["number", *(f"{word} {limit:g}" for word, limit in stated.items() if limit is not None)])


def number(
    above: float | None = None, below: float | None = None, least: float | None = None, most: float | None = None
) -> Reader:
    return Number(above, below, least, most)


def truth(value: Any) -> bool:
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise Unfit("must be true or false.")
    return value


def text(value: Any) -> str:
    """Text."""
    if not isinstance(value, str):
        raise Unfit("must be a text in quotes.")
    if not value or "\0" in value:
        raise Unfit("must not be empty.")
    return value


SENTENCE_MAX: Final = 300


def sentence(value: Any) -> str:
    """Text of one line, at most 300 characters."""
    if len(text(value)) > SENTENCE_MAX or not value.isprintable() or not value.strip():
        raise Unfit(f"must be one line of at most {SENTENCE_MAX} printable characters.")
    return str(value.strip())


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """One of these names."""

    names: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        if text(value) not in self.names:
            raise Unfit(f'"{value}" is unknown{suggestion(value, self.names)}')
        return self.names[self.names.index(value)]  # which may be the member of an enum


def one_of(*names: str) -> Reader:
    return OneOf(names)


@dataclasses.dataclass(frozen=True, slots=True)
class Either:
    """A text goes to the first reader, everything else to the second."""

    names: Reader
    reader: Reader

    def __call__(self, value: Any) -> Any:
        return self.names(value) if isinstance(value, str) else self.reader(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Distinct:
    reader: Reader

    def __call__(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unfit("must be a list in square brackets.")
        items = tuple(_each(self.reader, value))
        if len(set(items)) != len(items):
            raise Unfit("must not name anything twice.")
        return items


def limits(reader: Reader) -> Whole | None:
    """Return the limits of the whole numbers that a reader takes; None if it takes none."""
    if isinstance(reader, Either | Distinct):
        return limits(reader.reader)
    if reader is columns:
        return limits(column)
    return reader if isinstance(reader, Whole) else None


def described(reader: Reader) -> str:
    """Describe what a reader takes, for people."""
    if isinstance(reader, Whole):
        return f"whole number from {reader.least} to {reader.most:,}"
    if isinstance(reader, Number):
        return reader.text
    if isinstance(reader, OneOf):
        return ", ".join(f'`"{name}"`' for name in reader.names)
    if isinstance(reader, Either):
        return f"{described(reader.reader)}, or {described(reader.names)}"
    if isinstance(reader, Distinct):
        return f"list of distinct entries, each: {described(reader.reader)}"
    said = (reader.__doc__ or "").rstrip(".")
    return said[:1].lower() + said[1:]


def _each(reader: Reader, values: list[Any]) -> Iterable[Any]:
    for place, value in enumerate(values):
        try:
            yield reader(value)
        except Unfit as unfit:
            raise Unfit(f"entry {place} {unfit}") from None


def bounds(value: Any) -> tuple[float, float]:
    """`[low, high]`, with low below high."""
    if not isinstance(value, list) or len(value) != 2:
        raise Unfit("must be a list of two numbers, [low, high].")
    low, high = _each(number(), value)
    if low >= high:
        raise Unfit("the low end must be below the high end.")
    if not math.isfinite(high - low):
        raise Unfit("the ends must be less than the largest number apart.")
    return low, high


def columns(value: Any) -> tuple[str | int, ...]:
    """List of columns, each a name or a number from 0 to 1,000,000."""
    names: tuple[str | int, ...] = Distinct(column)(value)
    if not names:
        raise Unfit("must name at least one column.")
    return names


column: Final = Either(text, Whole(0, 1_000_000))


def separator(value: Any) -> str:
    """One character."""
    if len(text(value)) != 1 or value in '"\r\n':
        raise Unfit("must be one character, and neither a quote nor a line end.")
    return str(value)


RULE: Final = re.compile(r"^(<|<=|>|>=|==) *[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


def rule(value: Any) -> str:
    """Comparison with a number, such as `"< 3.5"`."""
    if not RULE.fullmatch(text(value)):
        raise Unfit('must be a comparison with a number, such as "< 3.5".')
    return str(value)


def standards(value: Any) -> dict[str, Any]:
    """`{ low = […], high = […] }`, or `{ mean = […], deviation = […], epsilon = …, delta = … }`."""
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"low", "high"} and all(isinstance(v, list) for v in value.values()):
        low, high = (list(_each(number(), value[end])) for end in ("low", "high"))
        if not low or len(low) != len(high) or any(a >= b for a, b in zip(low, high, strict=True)):
            raise Unfit("needs as many low ends as high ends, each below its high end.")
        return {"low": low, "high": high}
    if keys == {"mean", "deviation", "epsilon", "delta"} and all(isinstance(value[k], list) for k in _ESTIMATES):
        mean, deviation = list(_each(number(), value["mean"])), list(_each(number(above=0), value["deviation"]))
        if not mean or len(mean) != len(deviation):
            raise Unfit("needs as many means as deviations.")
        cost = {"epsilon": number(above=0)(value["epsilon"]), "delta": number(least=0, below=1)(value["delta"])}
        return {"mean": mean, "deviation": deviation, **cost}
    raise Unfit("must be { low = […], high = […] }, or { mean = […], deviation = […], epsilon = …, delta = … }.")


_ESTIMATES: Final = ("mean", "deviation")


def moment(value: Any) -> str:
    """Date and time with its offset from UTC, such as `2030-01-31T12:00:00Z`, in quotes or without."""
    try:
        parsed = tomllib.loads(f"moment = {value.strip()}")["moment"] if isinstance(value, str) else value
    except ValueError:
        parsed = None
    if not isinstance(parsed, datetime) or parsed.tzinfo is None:
        raise Unfit("must be a date and time with its offset, such as 2030-01-31T12:00:00Z.")
    return str(parsed.isoformat())


# Limits that several sections share.
LAPS: Final = Whole(1, 1_000_000)
HOPS: Final = Whole(1, 1_000_000_000)
TOKENS: Final = Whole(1, 1_000_000)
ROUNDS: Final = Whole(1, 10_000_000)
POSITIVE: Final = number(above=0)
SHARE: Final = number(above=0, below=1)
