"""Commented files to begin with: a sample's spec, or a node's configuration, with every key that could be changed.

The comments are made from what the guide's reference is made from (`files/reference.py`), and so are the keys that
stand there as comments, with their defaults or what they take. A spec that is written loads, and is its sample's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.readers import OneOf, Reader, described
from p2pdp.files.checks import why_not
from p2pdp.files.folder import disk_error
from p2pdp.files.node_config import NODE_SECTIONS
from p2pdp.files.reading import read_plain
from p2pdp.files.reference import default_text, default_value, meaning, node_default, section_meaning, taking
from p2pdp.files.samples import CLINIC, NODE, Sample
from p2pdp.files.schema import SECTIONS, Section, sections_of
from p2pdp.files.spec import load_spec, toml_value

_WIDTH: Final = 110
_HOW: Final = (
    'Lines such as "# seed = …" are keys that are not set, with their defaults where they have one: take the # away to '
    "set one, and from the [section] above it if it has one."
)


def written(sample: Sample, file: Path) -> list[Path]:
    """Write the file, and beside it the sample's data if it has any; return all that was written."""
    text = starter(sample)
    document = sample.document
    found = [file]
    contents = {file: text.encode()}
    for data in (document["data"].get(key) for key in ("path", "public")):
        if data is not None and (sample.path.parent / data).is_file():
            found.append(file.parent / data)
            contents[found[-1]] = read_plain(sample.path.parent / data)
    for rows in sample.rows:
        found.append(file.parent / rows.relative_to(sample.path.parent))
        contents[found[-1]] = read_plain(rows)
    for place, content in contents.items():
        if place.exists() and (place == file or read_plain(place) != content):
            raise UsageError(f"{place}: exists already; --out names another file")
    for place, content in contents.items():
        try:
            if place.parent != file.parent:
                place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise disk_error(place, error) from None
    return found


def starter(sample: Sample) -> str:
    """Return the sample's spec, or node configuration, with comments on all keys that its reader may want to set."""
    if sample.name in (NODE, CLINIC):
        lines = _intro(sample, "p2pdp node")
        lines += _node_lines(sample.document)
    else:
        lines = _intro(sample, "p2pdp plan, p2pdp simulate, p2pdp run")
        lines += _spec_lines(sample)
    return "\n".join(lines).rstrip("\n") + "\n"


def _intro(sample: Sample, commands: str) -> list[str]:
    return [
        *_comment(sample.shows),
        "#",
        *_comment(f"For {commands}. {_HOW} All keys: p2pdp guide spec."),
        "",
    ]


def _spec_lines(sample: Sample) -> Iterator[str]:
    spec, given = load_spec(sample.path), sample.document
    protocol, takers = spec.run.protocol, taking()
    for name, section in sections_of(protocol).items():
        keys = [key for key in section.readers if protocol in takers.get(f"{name}.{key}", [protocol])]
        values = given.get(name, {})
        reasons = {key: why_not(spec, f"{name}.{key}") for key in keys}
        yield from _head(name, section_meaning(name), given=name in given)
        if not values and all(reasons.values()):
            yield from _comment(f"Keys: {', '.join(keys)}. {_capital(next(iter(reasons.values())) or '')}")
            yield ""
            continue
        for key in keys:
            facts = f"{described(section.readers[key])}; {default_text(name, key, section)}"
            shown = values.get(key, default_value(name, key, section))
            yield from _entry(key, meaning(name, key), facts, shown, section.readers[key], given=key in values)
        yield ""


def _node_lines(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sections of a node's configuration; `[data]` has the keys that data of one's own can have."""
    sections: dict[str, Mapping[str, Reader]] = {"node": NODE_SECTIONS["node"], "data": SECTIONS["data"].readers}
    for name, readers in {**sections, **NODE_SECTIONS}.items():
        values = given.get(name, {})
        yield from _head(name, section_meaning(name), given=name in given)
        for key, reader in readers.items():
            section: Section | None = SECTIONS.get(name)
            default = node_default(name, key) if section is None else default_text(name, key, section)
            shown = values.get(key, None if section is None else default_value(name, key, section))
            yield from _entry(key, meaning(name, key), f"{described(reader)}; {default}", shown, reader, key in values)
        yield ""


def _head(name: str, what: str, *, given: bool) -> Sequence[str]:
    return (*_comment(what), f"[{name}]" if given else f"# [{name}]")


def _entry(key: str, what: str, facts: str, value: Any, reader: Reader, given: bool) -> Iterator[str]:
    yield from _comment(f"{what} ({facts})", indent="  ")
    if given:
        yield f"{key} = {toml_value(value)}"
    elif value is not None:
        yield f"# {key} = {toml_value(value)}"
    else:
        yield f"# {key} = " + (toml_value(reader.names[0]) if isinstance(reader, OneOf) else "…")


def _comment(text: str, indent: str = "") -> list[str]:
    plain = text.replace("`", "")
    return textwrap.wrap(plain, _WIDTH, initial_indent=f"#{indent} ", subsequent_indent=f"#{indent} ")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
