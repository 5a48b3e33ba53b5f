"""The table of what each key of a spec may hold; `files.checks` has the rules for which keys go together.

The table holds the sections that all specs have. A protocol family declares its own section as its `Options`, and
`sections_of` puts both together. Required keys and defaults are not repeated here: a field of `core.spec` without a
default is required. Every whole number has an upper limit, because a count is work. The guide's page `spec.md` is
generated from these tables (`files/reference.py`). Errors never quote values, except one of a list of names.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core import spec as parts
from p2pdp.core.claims import Unit
from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.core.readers import (
    HOPS,
    POSITIVE,
    ROUNDS,
    SHARE,
    Distinct,
    Reader,
    Unfit,
    Whole,
    bounds,
    column,
    columns,
    moment,
    number,
    one_of,
    rule,
    sentence,
    separator,
    standards,
    suggestion,
    text,
    truth,
)
from p2pdp.protocols import is_known, names, ours, protocol
from p2pdp.tasks.named import LOSSES, OBJECTIVES
from p2pdp.transports import registry

KINDS: Final = (
    "complete", "ring", "path", "star", "grid", "torus", "hypercube", "exponential", "regular", "erdos_renyi",
    "geometric", "file",
)  # fmt: skip

MECHANISMS: Final = ("gaussian", "laplace", "randomized_response", "privunit", "none")
SAMPLERS: Final = ("exact", "fast")
TASKS: Final = ("sum", "mean", "histogram", "linear_regression", "logistic_regression", "torch", "own")


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


def protocol_name(value: Any) -> str:
    """The name of a protocol of this package or of another that is installed."""
    if not is_known(text(value)):
        raise Unfit(f'"{value}" is unknown{suggestion(value, names())}')
    return str(value)


def loss(value: Any) -> str:
    """`"cross_entropy"`, `"mse"`, `"bce"`, or `"module:name"` of what is installed."""
    return str(value) if value in LOSSES else place_in_code(value)


def transport_name(value: Any) -> str:
    if not registry.is_known(text(value)):
        raise Unfit(f'"{value}" is unknown{suggestion(value, registry.names())}')
    return str(value)


transport_name.__doc__ = ", ".join(f'`"{name}"`' for name in registry.ours())  # for the reference of the spec


def task_kind(value: Any) -> str:
    """The name of a task of this package, or of an objective that another installed one adds."""
    if text(value) not in TASKS and value not in installed(OBJECTIVES):
        raise Unfit(f'"{value}" is unknown{suggestion(value, (*TASKS, *installed(OBJECTIVES)))}')
    return str(value)


task_kind.__doc__ = ", ".join(f'`"{name}"`' for name in TASKS)  # for the reference of the spec


def place_in_code(value: Any) -> str:
    """`"module:name"`, of what is installed."""
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", text(value)):
        raise Unfit('must read "module:name", such as "ourmodels.digits:network".')
    return str(value)


USERS: Final = Whole(1, 10_000_000)
_USER: Final = Whole(0, 10_000_000 - 1)
_PORT: Final = Whole(0, 65535)

SECTIONS: Final[dict[str, Section]] = {
    "run": Section(parts.RunPart, {
        "protocol": protocol_name, "nodes": USERS, "seed": Whole(0, 2**128 - 1),
        "transport": transport_name,
        "durability": one_of("process", "power"), "patience_s": POSITIVE, "min_nodes": USERS,
        "min_live": USERS,
        "enrol_timeout_s": POSITIVE, "expires": moment, "audit": truth,
        "purpose": sentence,
    }),
    "transport": Section(parts.TransportPart, {
        "host": text, "port": _PORT, "user": text, "password_file": text, "ca": text, "certificate": text, "key": text,
    }),
    "graph": Section(parts.GraphPart, {
        "kind": one_of(*KINDS), "degree": USERS, "probability": number(above=0, most=1),
        "radius": POSITIVE, "rows": USERS, "columns": USERS, "path": text,
        "weights": one_of("metropolis", "maxdegree", "lazy", "uniform"), "changing": truth, "public": truth,
    }),
    "noise": Section(parts.NoisePart, {
        "mechanism": one_of(*MECHANISMS), "sigma": POSITIVE,
        "epsilon": POSITIVE, "delta": SHARE, "closing": truth, "share": truth,
        "encoding": one_of("binary", "unary"), "sampler": one_of(*SAMPLERS), "pair_sigma": POSITIVE,
    }),
    "data": Section(parts.DataPart, {
        "kind": one_of("uniform", "normal", "unit_mixture", "categories", "csv", "npy", "parquet", "own"),
        "clip": bounds, "path": text, "columns": columns, "header": truth, "separator": separator,
        "target": column, "rule": rule, "target_range": bounds,
        "standardize": standards, "unit_norm": truth, "split_by": column, "public": text,
        "partition": one_of("even", "dirichlet", "by"), "alpha": POSITIVE, "column": column,
    }),
    "task": Section(parts.TaskPart, {
        "kind": task_kind,
        "categories": Whole(2, 100_000), "clip": POSITIVE, "rate": POSITIVE, "rounds": ROUNDS,
        "regularization": number(least=0), "batch": HOPS, "test": SHARE, "radius": POSITIVE,
        "schedule": one_of("constant", "inverse_sqrt", "inverse"), "intercept": truth,
        "averaging": one_of("last", "uniform", "linear"),
        "model": place_in_code, "loss": loss, "start": Whole(0, 2**63 - 1),
    }),
    "privacy": Section(parts.PrivacyPart, {
        "delta": SHARE, "unit": one_of(*Unit), "colluders": Distinct(_USER), "budget": POSITIVE,
        "colluders_max": _USER,
    }),
    "audit": Section(parts.AuditPart, {"key": text}),
}  # fmt: skip


def sections_of(name: Any) -> dict[str, Section]:
    """Return the sections of specs of this protocol, its own after `[graph]`; the common ones if nobody knows it."""
    options = protocol(name).options if isinstance(name, str) and is_known(name) else None
    if options is None:
        return SECTIONS
    if options.section in SECTIONS:
        raise UsageError(f"[run] protocol: {name} brings a section [{options.section}], which specs have already.")
    found = {}
    for common, section in SECTIONS.items():
        found[common] = section
        if common == "graph":
            found[options.section] = Section(options.part, options.readers, options.renamed)
    return found


def all_sections() -> dict[str, Section]:
    """Return the sections of specs of all our protocols."""
    found: dict[str, Section] = {}
    for name in SECTIONS:
        found[name] = SECTIONS[name]
        if name == "graph":
            for own in ours():
                found |= {key: section for key, section in sections_of(own).items() if key not in SECTIONS}
    return found


def unknown_section(section: str, name: Any, sections: Mapping[str, Section]) -> str:
    """Return why a spec of the protocol called `name` cannot have this section."""
    if isinstance(name, str) and any(_brings(other, section) for other in ours()):
        return f"[{section}] has no meaning for {name}; leave it out."
    return f"[{section}]: unknown section{suggestion(section, sections)}"


def _brings(name: str, section: str) -> bool:
    options = protocol(name).options
    return options is not None and options.section == section


def read_section(name: str, table: Any, sections: Mapping[str, Section] = SECTIONS) -> dict[str, Any]:
    """Return the section's values by key, each read; nothing is filled in and no required key is looked for."""
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] must be a section, with its keys on lines of their own.")
    readers = sections[name].readers
    values = {}
    for key, value in table.items():
        if key not in readers:
            raise UsageError(f"[{name}] {key}: unknown key{suggestion(key, readers)}")
        try:
            values[key] = readers[key](value)
        except Unfit as unfit:
            raise UsageError(f"[{name}] {key}: {unfit}") from None
    return values


def build_part(name: str, values: Mapping[str, Any], sections: Mapping[str, Section] = SECTIONS) -> Any:
    """Return the section as its frozen value; refuse a missing key by name."""
    section = sections[name]
    for key in section.required:
        if key not in values:
            raise UsageError(f"[{name}] {key}: missing; a spec needs it.")
    return section.part(**{section.field_of(key): value for key, value in values.items()})
