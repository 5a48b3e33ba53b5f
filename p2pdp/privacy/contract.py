"""A named accountant is one published theorem or account that `p2pdp account NAME key=value …` answers for.

Each is a module `theorems/NAME.py` with an `ACCOUNTANT`: the inputs it declares, each with its kind, range and one
line of help, and a function from checked inputs to an `Answer`. Nothing registers itself. An installed package may
add accountants by entry points of the group `p2pdp.theorems`, each of which names one and refers to the object.

Guarantee: `account` refuses what is not declared, missing, no number, or out of range, by the input's name, with
`UsageError`. So the function gets every declared input, of the declared type and within the declared range (None
where it is optional and was not given), and checks only what concerns several inputs: `UsageError` where they do not
fit together, `Refused` where an assumption of the theorem does not hold, naming it; `account` puts the accountant's
name before its sentence. An answer is made of numbers of at least 0 and infinities; nan cannot leave this room.
Numeric upper ends are rounded up and lower ends down; closed formulas are right to a few units of the last digit.

An answer that is no bound (`bound = False`) is a formula as printed, kept to be compared.
"""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from pkgutil import iter_modules
from typing import Any, Final

from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.installed import installed
from p2pdp.privacy import theorems

_KIND: Final = "theorems"

_KINDS: Final[dict[str, type]] = {"number": Real, "whole": Integral, "name": str}
_TYPES: Final = {"number": float, "whole": int, "name": str}
_TEXTS: Final = {"number": "a number", "whole": "a whole number", "name": "a name"}


@dataclass(frozen=True, slots=True)
class Input:
    """One declared input; made by `number`, `whole` and `choice`.

    Numbers lie from `least` to `most`, both included unless `is_open`, where both are left out. Required where
    there is no default and it is not optional.
    """

    name: str
    help: str
    kind: str = "number"
    least: float = 0.0
    most: float = math.inf
    is_open: bool = False
    choices: tuple[str, ...] = ()
    default: float | str | None = None
    optional: bool = False

    @property
    def required(self) -> bool:
        return self.default is None and not self.optional

    @property
    def range(self) -> str:
        """Describe the range in words."""
        if self.kind == "name":
            return f"one of {', '.join(self.choices)}"
        between = "strictly between {} and {}" if self.is_open else "from {} to {}"
        return f"{_TEXTS[self.kind]} {between.format(_plain(self.least), _plain(self.most))}"

    def admits(self, value: Any) -> bool:
        if self.kind == "name":
            return value in self.choices
        return self.least < value < self.most if self.is_open else bool(self.least <= value <= self.most)


def number(
    name: str, help_text: str, least: float, most: float, *, is_open: bool = False, default: float | None = None,
    optional: bool = False,
) -> Input:  # fmt: skip
    """Declare a real number; `account` passes it on as a float."""
    return Input(name, help_text, "number", least, most, is_open, default=default, optional=optional)


def whole(
    name: str, help_text: str, least: int, most: int, *, default: int | None = None, optional: bool = False
) -> Input:
    return Input(name, help_text, "whole", least, most, default=default, optional=optional)


def choice(name: str, help_text: str, choices: Iterable[str], *, default: str | None = None) -> Input:
    """Declare one word of several."""
    return Input(name, help_text, "name", choices=tuple(choices), default=default)


LARGEST_BELOW_1: Final = math.nextafter(1.0, 0.0)
DELTA: Final = number("delta", "the delta at which epsilon is wanted", 0.0, 1.0, is_open=True)
DELTA_PRIME: Final = number("delta_prime", "delta that advanced composition adds", 0.0, 1.0, is_open=True)
EPSILON: Final = number("epsilon", "epsilon of one contribution", 0.0, 700.0)
LOCAL_DELTA: Final = number("delta", "delta of one contribution", 0.0, LARGEST_BELOW_1)


@dataclass(frozen=True, slots=True)
class Answer:
    """Numbers by name; `bound` says whether they are proven, under the assumptions listed, as `source` shows."""

    outputs: Mapping[str, float]
    bound: bool
    assumptions: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        for output, value in self.outputs.items():
            if not value >= 0.0:
                raise ArithmeticError(f"{output} came out as {value}: an accountant's answer is at least 0")


@dataclass(frozen=True, slots=True)
class Accountant:
    """`help` is one line, without the formula; `answer` takes checked inputs by name."""

    help: str
    inputs: tuple[Input, ...]
    answer: Callable[[Mapping[str, Any]], Answer]


def names() -> tuple[str, ...]:
    """Return the names of all accountants that are installed."""
    return tuple(sorted(_ours() | installed(_KIND).keys()))


def accountant(name: str) -> Accountant:
    """Return the accountant of this name; `UsageError` names the nearest where there is none."""
    if name in _ours():
        found: Accountant = import_module(f"{theorems.__name__}.{name}").ACCOUNTANT
        return found
    if name not in installed(_KIND):
        raise UsageError(f"account {name}: there is no accountant of this name{_nearest(name, names())}")
    loaded: Accountant = installed(_KIND)[name].load()
    return loaded


@cache
def _ours() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(theorems.__path__))


def account(name: str, inputs: Mapping[str, Any]) -> Answer:
    """Return the answer of the accountant of this name for inputs given as numbers and names."""
    found = accountant(name)
    try:
        return found.answer(checked(found, inputs))
    except (Refused, UsageError) as error:
        raise type(error)(f"account {name}: {error}") from None


def checked(of: Accountant, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all declared inputs by name: as given, else their defaults."""
    declared = {one.name: one for one in of.inputs}
    for key in given:
        if key not in declared:
            raise UsageError(f"{key}: there is no such input{_nearest(key, declared)}")
    missing = [one.name for one in of.inputs if one.required and one.name not in given]
    if missing:
        raise UsageError(f"{missing[0]}: missing; it has to be {declared[missing[0]].range}")
    return {key: _checked(one, given[key]) if key in given else one.default for key, one in declared.items()}


def read_inputs(name: str, words: Iterable[str]) -> dict[str, Any]:
    """Read inputs of this accountant from words `key=value` of a command line, as numbers and names."""
    kinds = {one.name: one.kind for one in accountant(name).inputs}
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"account {name}: {word}: inputs are written key=value")
        if key in found:
            raise UsageError(f"account {name}: {key}: given twice")
        try:
            found[key] = _TYPES[kinds.get(key, "name")](text)
        except ValueError:
            found[key] = text  # which `checked` refuses with the range that it has to be in
    return found


def _checked(one: Input, value: Any) -> Any:
    """Return the value as the declared type: numbers of other libraries too, but a truth value is no number."""
    if isinstance(value, _KINDS[one.kind]) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            plain = _TYPES[one.kind](value)
            if one.admits(plain):
                return plain
    raise UsageError(f"{one.name}: {value!r} is not {one.range}")


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(known)}"


def _plain(bound: float) -> str:
    return f"{bound:.15g}"
