"""What each key of a spec may hold, as one table; which keys go together is in `files.checks`.

A reader takes what TOML gave and returns what `core.spec` keeps, or raises `Unfit` with what was
expected. Required keys and defaults are not repeated here: a field of `core.spec` without a default
is required. A truth value is not a number, a whole number may stand for a number, and infinity and
NaN are refused. Values are never quoted in errors beyond the key and the word that was meant,
except where the value is one of a list of names.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from p2pdp.core import spec as parts
from p2pdp.core.errors import UsageError


class Unfit(Exception):
    """A value that a reader cannot take; its text says what was expected."""


Reader = Callable[[Any], Any]

KINDS: Final = (
    "complete", "ring", "path", "star", "grid", "torus", "hypercube", "exponential", "regular", "erdos_renyi",
    "geometric", "file",
)  # fmt: skip
PROTOCOLS: Final = (
    "walk.sum", "walk.histogram", "walk.sgd", "gossip.average", "gossip.randomized", "gossip.sgd", "shuffle.all",
    "shuffle.single",
)  # fmt: skip

MECHANISMS: Final = ("gaussian", "laplace", "randomized_response", "privunit", "none")
SAMPLERS: Final = ("exact", "fast")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` where a known word is near, else the list of the known ones."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(names)}."


def whole(least: int, most: int | None = None) -> Reader:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unfit("must be a whole number.")
        if value < least:
            raise Unfit(f"must be at least {least}.")
        if most is not None and value > most:
            raise Unfit(f"must be at most {most:,}.")
        return value

    return read


def number(above: float | None = None, below: float | None = None, least: float | None = None) -> Reader:
    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unfit("must be a number.")
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if not math.isfinite(result):
            raise Unfit("must be finite.")
        if above is not None and result <= above:
            raise Unfit(f"must be above {above:g}.")
        if least is not None and result < least:
            raise Unfit(f"must be at least {least:g}.")
        if below is not None and result >= below:
            raise Unfit(f"must be below {below:g}.")
        return result + 0.0  # so that -0.0 and 0.0 are one value

    return read


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit("must be true or false.")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit("must be a text in quotes.")
    if not value or "\0" in value:
        raise Unfit("must not be empty.")
    return value


def one_of(*names: str) -> Reader:
    def read(value: Any) -> str:
        if text(value) not in names:
            raise Unfit(f'"{value}" is unknown{suggestion(value, names)}')
        return str(value)

    return read


def either(names: Reader, reader: Reader) -> Reader:
    """A text goes to the first reader, everything else to the second."""
    return lambda value: names(value) if isinstance(value, str) else reader(value)


def distinct(reader: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unfit("must be a list in square brackets.")
        items = tuple(_each(reader, value))
        if len(set(items)) != len(items):
            raise Unfit("must not name anything twice.")
        return items

    return read


def _each(reader: Reader, values: list[Any]) -> Iterable[Any]:
    for place, value in enumerate(values):
        try:
            yield reader(value)
        except Unfit as unfit:
            raise Unfit(f"entry {place} {unfit}") from None


def bounds(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise Unfit("must be a list of two numbers, [low, high].")
    low, high = _each(number(), value)
    if low >= high:
        raise Unfit("the low end must be below the high end.")
    if not math.isfinite(high - low):
        raise Unfit("the ends must be less than the largest number apart.")
    return low, high


def columns(value: Any) -> tuple[str | int, ...]:
    names: tuple[str | int, ...] = distinct(column)(value)
    if not names:
        raise Unfit("must name at least one column.")
    return names


column: Final = either(text, whole(0))


def separator(value: Any) -> str:
    if len(text(value)) != 1 or value in '"\r\n':
        raise Unfit("must be one character, and neither a quote nor a line end.")
    return str(value)


def rule(value: Any) -> str:
    """A comparison with a public threshold: it makes a yes-or-no target of a numeric column."""
    if not re.fullmatch(r"(<|<=|>|>=|==) *[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text(value)):
        raise Unfit('must be a comparison with a number, such as "< 3.5".')
    return str(value)


def standards(value: Any) -> dict[str, Any]:
    """Public ranges of the columns, or estimates that were made privately, with what these cost."""
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
    """A date and time with its offset from UTC, as TOML writes it, in quotes or without."""
    try:
        parsed = tomllib.loads(f"moment = {value.strip()}")["moment"] if isinstance(value, str) else value
    except ValueError:
        parsed = None
    if getattr(parsed, "tzinfo", None) is None or not hasattr(parsed, "date"):
        raise Unfit("must be a date and time with its offset, such as 2030-01-31T12:00:00Z.")
    return str(parsed.isoformat())


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    part: type[Any]
    readers: Mapping[str, Reader]
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def field_of(self, key: str) -> str:
        return self.renamed.get(key, key)

    @property
    def required(self) -> tuple[str, ...]:
        missing = dataclasses.MISSING
        plain = {f.name for f in dataclasses.fields(self.part) if f.default is missing and f.default_factory is missing}
        return tuple(key for key in self.readers if self.field_of(key) in plain)


_COUNT: Final = whole(1)
_USERS: Final = whole(1, 10_000_000)
_POSITIVE: Final = number(above=0)
_SHARE: Final = number(above=0, below=1)
_PORT: Final = whole(0)

SECTIONS: Final[dict[str, Section]] = {
    "run": Section(parts.RunPart, {
        "protocol": one_of(*PROTOCOLS), "nodes": _USERS, "seed": whole(0), "transport": one_of("tcp", "mqtt", "memory"),
        "durability": one_of("process", "power"), "patience_s": _POSITIVE, "min_nodes": _USERS,
        "enrol_timeout_s": _POSITIVE, "expires": moment, "audit": truth,
    }),
    "transport": Section(parts.TransportPart, {
        "host": text, "port": _PORT, "user": text, "password_file": text, "ca": text, "certificate": text, "key": text,
    }),
    "graph": Section(parts.GraphPart, {
        "kind": one_of(*KINDS), "degree": _COUNT, "probability": number(above=0, below=math.nextafter(1, 2)),
        "radius": _POSITIVE, "rows": _COUNT, "columns": _COUNT, "path": text,
        "weights": one_of("metropolis", "maxdegree", "lazy", "uniform"), "changing": truth, "public": truth,
    }),
    "walk": Section(parts.WalkPart, {
        "order": one_of("ring", "random"), "laps": _COUNT, "hops": _COUNT, "tokens": _COUNT,
    }),
    "gossip": Section(parts.GossipPart, {
        "rounds": either(one_of("auto"), _COUNT), "accelerated": truth, "message_sigma": _POSITIVE,
        "publish": one_of("none", "one", "all"), "lambda": _SHARE, "activations": _COUNT,
    }, renamed={"lambda": "spectral_gap"}),
    "shuffle": Section(parts.ShufflePart, {
        "rounds": either(one_of("auto", "mixing"), _COUNT), "stay": number(least=0, below=1), "cover": truth,
    }),
    "noise": Section(parts.NoisePart, {
        "mechanism": one_of(*MECHANISMS), "sigma": _POSITIVE,
        "epsilon": _POSITIVE, "delta": _SHARE, "closing": truth, "share": truth,
        "encoding": one_of("binary", "unary"), "sampler": one_of(*SAMPLERS),
    }),
    "data": Section(parts.DataPart, {
        "kind": one_of("uniform", "normal", "unit_mixture", "categories", "csv", "npy"), "clip": bounds, "path": text,
        "columns": columns, "header": truth, "separator": separator, "target": column, "rule": rule,
        "target_range": bounds, "standardize": standards, "unit_norm": truth, "split_by": column,
    }),
    "task": Section(parts.TaskPart, {
        "kind": one_of("sum", "mean", "histogram", "linear_regression", "logistic_regression", "own"),
        "categories": whole(2), "clip": _POSITIVE, "rate": _POSITIVE, "rounds": _COUNT,
        "regularization": number(least=0), "batch": _COUNT, "test": _SHARE, "radius": _POSITIVE,
        "schedule": one_of("constant", "inverse_sqrt", "inverse"), "intercept": truth,
        "averaging": one_of("last", "uniform", "linear"),
    }),
    "privacy": Section(parts.PrivacyPart, {
        "delta": _SHARE, "unit": one_of("user"), "colluders": distinct(whole(0)), "budget": _POSITIVE,
    }),
    "audit": Section(parts.AuditPart, {"key": text}),
}  # fmt: skip


def read_section(name: str, table: Any) -> dict[str, Any]:
    """The section's values by key, each read; nothing is filled in and nothing required is looked for."""
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] must be a section, with its keys on lines of their own.")
    readers = SECTIONS[name].readers
    values = {}
    for key, value in table.items():
        if key not in readers:
            raise UsageError(f"[{name}] {key}: unknown key{suggestion(key, readers)}")
        try:
            values[key] = readers[key](value)
        except Unfit as unfit:
            raise UsageError(f"[{name}] {key}: {unfit}") from None
    return values


def build_part(name: str, values: Mapping[str, Any]) -> Any:
    """The section as its frozen value; a missing key is named."""
    section = SECTIONS[name]
    for key in section.required:
        if key not in values:
            raise UsageError(f"[{name}] {key}: missing; a spec needs it.")
    return section.part(**{section.field_of(key): value for key, value in values.items()})
