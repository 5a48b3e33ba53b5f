"""The guide's page `spec`: every section and key of specs and node configurations, made from the schema.

To write the page again: `python -c "from p2pdp.files.reference import write; write()"`. A test compares.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from p2pdp.core.readers import described
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.files.checks import COMMON, DATA, applies, rules_of
from p2pdp.files.guide import FOLDER
from p2pdp.files.meanings import MEANINGS, SECTION_MEANINGS
from p2pdp.files.node_config import NODE_NEEDED, NODE_SECTIONS
from p2pdp.files.schema import KINDS, Section, all_sections, sections_of
from p2pdp.protocols import ours, protocol
from p2pdp.protocols.options import Options, Rules

_FILLED: Final = {
    "run.min_nodes": "default: `nodes`",
    "run.min_live": "default: `min_nodes` where that is below `nodes`, else 1",
    "graph.public": "default: by kind",
    "privacy.delta": "default `1e-6`",
}
_REQUIRED: Final = {
    "run.nodes": 'required, except with kind "file"',
    "task.kind": "required for learning and shuffling",
}
_DEFAULTS: Final = {
    "accept.observer": 'default `"network"`',
    "accept.unit": 'default `"user"`',
    "budget.observer": 'default `"network"`',
    "budget.unit": 'default `"user"`',
    "budget.delta": "default `1e-6`",
    "budget.ledger": "default `~/.local/state/p2pdp/budget`",
}
_INTRODUCTION: Final = """\
# Reference: specs and node configurations

A spec is a TOML file that says what a run does. The sections `[run]`, `[graph]`, `[noise]` and `[data]` are always
needed, and beside them the section of the protocol's family. Relative paths are relative to the spec file.
`--set section.key=value` overrides an entry; the value is read as TOML. An unknown key, a wrong type, or an impossible
combination is an error that names the key and, where one is near, the key that was meant.

Behind each key stand what it takes, its default, which protocols take it if not all do, and what it means. A number is
finite; a whole number may stand for a number, `true` and `false` may not.

The configuration of a node (`p2pdp node CONFIG`) has the sections `[node]`, `[accept]` and `[budget]`, and `[data]` and
`[transport]` with the keys of a spec. Only `[node]` and `[data]` are required; `[data] clip` is the spec's.
"""


def write() -> None:
    """Write the page into the package's folder."""
    (FOLDER / "spec.md").write_text(reference(), "utf-8")


def reference() -> str:
    """Return the page."""
    takers = taking()
    parts = [_INTRODUCTION]
    for name, section in all_sections().items():
        entries = [
            _entry(
                key,
                [described(reader), default_text(name, key, section), _protocols(takers[f"{name}.{key}"])],
                meaning(name, key),
            )
            for key, reader in section.readers.items()
        ]
        parts.append(_section(name, entries))
    parts.append(_together())
    for name, readers in NODE_SECTIONS.items():
        own = [
            _entry(key, [described(reader), node_default(name, key)], meaning(name, key))
            for key, reader in readers.items()
        ]
        parts.append(_section(name, own))
    return "\n".join(parts)


def _owned() -> dict[str, Options]:
    """Return the options of our families by their sections."""
    declared = [protocol(name).options for name in ours()]
    return {options.section: options for options in declared if options is not None}


def _rules(section: str) -> Iterator[Rules]:
    yield COMMON
    owned = _owned()
    yield from [owned[section].rules] if section in owned else [options.rules for options in owned.values()]


def _section(name: str, entries: Sequence[str]) -> str:
    return f"## `[{name}]`\n\n{section_meaning(name)}\n\n{''.join(entries)}"


def section_meaning(name: str) -> str:
    """Return what a section of specs or node configurations is for."""
    owned = _owned()
    return owned[name].meaning if name in owned else SECTION_MEANINGS.get(name, "")


def _entry(key: str, facts: Sequence[str], meaning: str) -> str:
    return f"* **`{key}`** ({'; '.join(fact for fact in facts if fact)}): {meaning}\n"


def table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell for cell in line)} |\n" for line in lines)


def meaning(name: str, key: str) -> str:
    """Return what a key is for, and when it has a meaning or is needed."""
    full, owned = f"{name}.{key}", _owned()
    sentences = [owned[name].meanings[key] if name in owned else MEANINGS.get(full, "")]
    sentences += [_sentence(rules.only[full][1]) for rules in _rules(name) if full in rules.only]
    sentences += [_sentence(rules.needed[full][1]) for rules in _rules(name) if full in rules.needed]
    return " ".join(sentences)


def _sentence(text: str) -> str:
    """Return the text with a capital first, unless it begins with a protocol's name."""
    return text if "." in text.split(maxsplit=1)[0] else text[:1].upper() + text[1:]


def default_text(name: str, key: str, section: Section) -> str:
    """Return the default of a key for people, or that it is required."""
    full = f"{name}.{key}"
    if full in _REQUIRED:
        return _REQUIRED[full]
    if full in _FILLED:
        return _FILLED[full]
    if key in section.required:
        return "required"
    values = {one.name: one.default for one in dataclasses.fields(section.part)}
    needed = any(full in rules.needed for rules in _rules(name))
    return "no default" if needed else _shown(values[section.field_of(key)])


def default_value(name: str, key: str, section: Section) -> Any:
    """Return the default of a key that has one; None otherwise."""
    if key in section.required or any(f"{name}.{key}" in rules.needed for rules in _rules(name)):
        return None
    return {one.name: one.default for one in dataclasses.fields(section.part)}[section.field_of(key)]


def node_default(name: str, key: str) -> str:
    """Return the default of a key of a node's configuration for people, or that it is required."""
    return "required" if key in NODE_NEEDED.get(name, ()) else _DEFAULTS.get(f"{name}.{key}", "optional")


def _shown(value: Any) -> str:
    if value is None:
        return "optional"
    if isinstance(value, bool):
        return f"default `{str(value).lower()}`"
    if isinstance(value, tuple):
        return "default `[]`"
    return f'default `"{value}"`' if isinstance(value, str) else f"default `{value:g}`"


def _together() -> str:
    """Describe which tasks, mechanisms and data go together."""
    kinds = [(f"`{task}`", ", ".join(f"`{kind}`" for kind in DATA[task])) for task in DATA]
    noises = [
        (f"`{name}`", f"`{task}`", ", ".join(f"`{mechanism}`" for mechanism in mechanisms))
        for name in ours()
        for task, mechanisms in protocol(name).tasks.items()
    ]
    return (
        f"## What goes together\n\n{table(('protocol', '`[task] kind`', '`[noise] mechanism`'), noises)}\n"
        f"{table(('task', '`[data] kind`'), kinds)}\n"
        "PrivUnit reports directions: it takes `unit_mixture`, or files with `unit_norm = true`.\n"
    )


@cache
def taking() -> dict[str, list[str]]:
    """Return the protocols that take each key: those that have a possible spec in which it has a meaning."""
    keys: dict[str, set[str]] = {f"{name}.{key}": set() for name, one in all_sections().items() for key in one.readers}
    for spec in _possible():
        sections = sections_of(spec.run.protocol)
        for name, protocols in keys.items():
            unknown = spec.run.protocol not in protocols
            if unknown and name.partition(".")[0] in sections and applies(spec, name):
                protocols.add(spec.run.protocol)
    return {name: [one for one in ours() if one in protocols] for name, protocols in keys.items()}


def _possible() -> Iterator[Spec]:
    """Yield specs of all protocols that differ in what rules look at, and break none of them."""
    for name in ours():
        options = protocol(name).options
        examples = [None] if options is None else options.examples or [options.part()]
        for kind, own, task in itertools.product(KINDS, examples, protocol(name).tasks):
            bare = Spec(
                RunPart(name, 4),
                GraphPart(kind),
                NoisePart("none"),
                DataPart(DATA[task][0]),
                TaskPart(task),
                options=own,
            )
            for noise, data, changing in itertools.product(protocol(name).tasks[task], DATA[task], (False, True)):
                spec = dataclasses.replace(
                    bare,
                    graph=GraphPart(kind, changing=changing),
                    noise=NoisePart(noise),
                    data=DataPart(data, unit_norm=noise == "privunit"),
                )
                if all(possible(spec) for rules in rules_of(spec) for _, possible, _ in rules.possible):
                    yield spec
                    if applies(spec, "data.partition") and kind == KINDS[0]:
                        yield dataclasses.replace(spec, data=DataPart(data, partition="by"))
                        yield dataclasses.replace(spec, data=DataPart(data, partition="dirichlet", target=0))


def _protocols(names: list[str]) -> str:
    if len(names) == len(ours()):
        return ""
    shown = []
    for family in dict.fromkeys(name.partition(".")[0] for name in names):
        members = [name for name in ours() if name.startswith(f"{family}.")]
        here = [name for name in names if name in members]
        shown += [f"`{family}.*`"] if here == members else [f"`{name}`" for name in here]
    return ", ".join(shown)
