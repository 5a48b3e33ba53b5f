"""Reads, checks, writes and names specs: the TOML files that say what a run does.

`load_spec` and `parse_spec` return a spec that passed `files.checks`, with everything filled in that has a default:
`[task] kind`, `min_nodes`, `public`, and delta 1e-6. A protocol may still refuse a sound spec when it is run.
`spec_to_toml` writes the effective spec, which parses back to an equal one, and `spec_digest` names it by 32 bytes.

A spec that comes with a folder has its relative paths made absolute, and the edge list of graph kind `file` is read,
because the number of nodes is its size. A text without a folder (base None), such as bootstrap hands to nodes on other
machines, keeps its paths as written and no file is opened. The digest leaves out all paths of files, also that of the
edge list: they differ from one machine to the next, and the graph has a digest of its own in the roster.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.crypto.sealed import SealError, seal_to
from p2pdp.files.checks import applies, check, value_of
from p2pdp.files.reading import read_text
from p2pdp.files.schema import SECTIONS, Section, build_part, read_section, sections_of, unknown_section
from p2pdp.files.tables import read_edge_list
from p2pdp.protocols import protocol
from p2pdp.topology.graphs import EdgeList, is_public

_PATHS: Final = {
    "data": ("path", "public"),
    "graph": ("path",),
    "transport": ("password_file", "ca", "certificate", "key"),
}
_ALWAYS: Final = ("run", "graph", "noise", "data")
_FILLED: Final = ("task", "privacy", "transport")
_DEFAULT_DELTA: Final = 1e-6


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> Spec:
    """Read the spec in this file, with `section.key=value` overrides applied before anything is checked."""
    place = Path(path)
    text = read_text(place)
    try:
        return parse_spec(text, place.parent, overrides)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def parse_spec(
    text: str, base: Path | None, overrides: Sequence[str] = (), changes: Sequence[tuple[str, str, Any]] = ()
) -> Spec:
    """Read the spec in this text; relative paths are relative to the folder `base`.

    `changes` are sections, keys and values that replace entries after the overrides.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for numbers of thousands of digits
        raise UsageError(f"The spec is not TOML: {error}.") from None
    for override in overrides:
        _override(document, override)
    for section, key, value in changes:
        _put(document, section, key, value)
    return read_document(document, base)


def read_document(document: dict[str, Any], base: Path | None, edges: EdgeList | None = None) -> Spec:
    """Read the spec that a document holds, as TOML would give it; `edges` stand for the file of graph kind `file`."""
    sections = _sections_for(document)
    values = {name: read_section(name, table, sections) for name, table in document.items()}
    for name in _ALWAYS:
        if name not in values:
            raise UsageError(f"[{name}] is missing; it needs {' and '.join(SECTIONS[name].required)} at least.")
    given = {f"{name}.{key}" for name, table in values.items() for key in table}
    if base is not None:
        _resolve_paths(values, base.resolve())
    if "key" in values.get("audit", {}):
        values["audit"]["key"] = auditor_public(values["audit"]["key"], base)
    _fill(values, edges, read_files=base is not None)
    parts = {name: build_part(name, values.pop(name)) for name in [*values] if name in SECTIONS}
    own = [build_part(name, values.get(name, {}), sections) for name in sections if name not in SECTIONS]
    spec = Spec(**parts, options=next(iter(own), None))
    check(spec, given)
    return spec if edges is None else dataclasses.replace(spec, graph=dataclasses.replace(spec.graph, own=edges))


def _sections_for(document: Mapping[str, Any]) -> dict[str, Section]:
    """Return the sections that a document may have, which its protocol decides; refuse others."""
    if "run" in document and "protocol" not in read_section("run", document["run"]):
        raise UsageError("[run] protocol: missing; a spec needs it.")
    name = _protocol_in(document)
    sections = sections_of(name)
    for section in document:
        if section not in sections:
            raise UsageError(unknown_section(section, name, sections))
    return sections


def _protocol_in(document: Mapping[str, Any]) -> Any:
    """Return what a document names as its protocol, of any type."""
    run = document.get("run")
    return run.get("protocol") if isinstance(run, dict) else None


def _override(document: dict[str, Any], override: str) -> None:
    match = re.fullmatch(r"\s*([A-Za-z_]+)\.([A-Za-z_]+)\s*=(.*)", override, re.DOTALL)
    if match is None:
        raise UsageError(f"--set {override}: must read section.key=value.")
    section, key, value = match.groups()
    sections = sections_of(_protocol_in(document))
    if section not in sections:
        raise UsageError(f"--set {override}: {unknown_section(section, _protocol_in(document), sections)}")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    if set(parsed) != {"value"}:
        hint = f"""; a text needs quotes: --set '{section}.{key}="{value.strip()}"'""" if '"' not in value else ""
        raise UsageError(f"--set {override}: the value is not TOML{hint}.")
    _put(document, section, key, parsed["value"])


def _put(document: dict[str, Any], section: str, key: str, value: Any) -> None:
    table = document.setdefault(section, {})
    if isinstance(table, dict):  # anything else is refused, by name, when the section is read
        table[key] = value


def rewritten(text: str, base: Path | None, folder: str | None = None) -> str:
    """Return the text of a spec, or of a part of one, without comments and with absolute paths.

    With `folder` each file has a plain name in it instead, as `elsewhere` gives.
    """
    document = tomllib.loads(text)
    if base is not None:
        _resolve_paths(document, base.resolve())
    if "key" in document.get("audit", {}):
        document["audit"]["key"] = auditor_public(document["audit"]["key"], base)
    for section, keys in _PATHS.items() if folder is not None else ():
        table = document.get(section, {})
        table.update({key: f"{folder}{_plain_name(section, key, table[key])}" for key in keys if key in table})
    sections = [
        [f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items()), ""]
        for name, table in document.items()
    ]
    return "\n".join(line for lines in sections for line in lines)


def _resolve_paths(values: Mapping[str, dict[str, Any]], base: Path) -> None:
    for section, keys in _PATHS.items():
        table = values.get(section, {})
        table.update({key: str((base / table[key]).resolve()) for key in keys if key in table})


def auditor_public(key: str, base: Path | None) -> str:
    """Return the auditor's public key in hexadecimal, given as such or as the file that holds it."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", key) is None and base is not None:
        key = read_text(base / key).strip()
    if re.fullmatch(r"[0-9a-fA-F]{64}", key) is None:
        raise UsageError(
            "[audit] key: must be 64 hexadecimal digits, or in a spec file the path of the auditor.pub that "
            "p2pdp keygen --auditor made."
        )
    try:
        seal_to(bytes.fromhex(key), b"", bytes(32))
    except SealError:
        raise UsageError("[audit] key: nothing can be sealed to this key.") from None
    return key.lower()


def _fill(values: dict[str, dict[str, Any]], edges: EdgeList | None, *, read_files: bool) -> None:
    """Fill in what has a default that depends on other keys."""
    run, graph = values["run"], values["graph"]
    if values["data"].get("partition") == "even":  # what specs mean that say nothing
        del values["data"]["partition"]
    for name in _FILLED:
        values.setdefault(name, {})
    if graph.get("kind") == "file" and "path" in graph and (read_files or edges is not None):
        found = read_edge_list(Path(graph["path"])) if edges is None else edges
        if run.setdefault("nodes", found.n) != found.n:
            where = graph["path"] if edges is None else "the graph given"
            raise UsageError(
                f"[run] nodes: is {run['nodes']}, but the largest component of {where} has {found.n} nodes; "
                "leave it out."
            )
    if "nodes" in run:
        run.setdefault("min_nodes", run["nodes"])
    default = protocol(run["protocol"]).default_task if "protocol" in run else None
    if default is not None:
        values["task"].setdefault("kind", default)
    if "kind" in graph:
        graph.setdefault("public", is_public(build_part("graph", graph)))
    values["privacy"].setdefault("delta", _DEFAULT_DELTA)


def demo_spec() -> Spec:
    """Return the spec of `p2pdp demo`, which comes with the package."""
    return load_spec(Path(__file__).with_name("demo.toml"))


def spec_to_toml(spec: Spec) -> str:
    """Return the effective spec: every key that has a meaning and a value, always in the same order."""
    lines = []
    for name, section in sections_of(spec.run.protocol).items():
        named = {key: value_of(spec, f"{name}.{key}") for key in section.readers if applies(spec, f"{name}.{key}")}
        entries = [f"{key} = {toml_value(value)}" for key, value in named.items() if value is not None]
        if entries:
            lines += [f"[{name}]", *entries, ""]
    return "\n".join(lines)


def toml_value(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    raise UsageError(f"A spec cannot hold a {type(value).__name__}.")


def without_own(spec: Spec) -> Spec:
    """Return the spec as whoever reads its file has it: without objective, rows and edges of the caller."""
    parts = {name: dataclasses.replace(getattr(spec, name), own=None) for name in ("task", "data", "graph")}
    parts["data"] = dataclasses.replace(parts["data"], public_own=None)
    return dataclasses.replace(spec, **parts)


def without_paths(spec: Spec) -> Spec:
    """Return the spec without any place of a file."""
    parts = {name: dataclasses.replace(getattr(spec, name), **dict.fromkeys(keys)) for name, keys in _PATHS.items()}
    return dataclasses.replace(spec, **parts)


def named_files(spec: Spec) -> dict[str, Path]:
    """Return the files that a spec computes on, by the plain names that `elsewhere` gives them."""
    named = {("data", "path"): spec.data.path, ("data", "public"): spec.data.public, ("graph", "path"): spec.graph.path}
    return {_plain_name(*place, path): Path(path) for place, path in named.items() if path is not None}


def elsewhere(spec: Spec, folder: str) -> Spec:
    """Return the spec with a plain name in this folder for each file that it names; its digest stays the same."""
    parts = {}
    for section, keys in _PATHS.items():
        part = getattr(spec, section)
        given = {key: getattr(part, key) for key in keys if getattr(part, key) is not None}
        names = {key: f"{folder}{_plain_name(section, key, path)}" for key, path in given.items()}
        parts[section] = dataclasses.replace(part, **names)
    return dataclasses.replace(spec, **parts)


def _plain_name(section: str, key: str, path: str) -> str:
    """Name a file after its use, so that the name tells nothing else; readers go by the ending."""
    ending = re.search(r"(?:\.(?:csv|txt|npy|parquet))?(?:\.gz)?$", path)
    name = section if key == "path" else f"{section}-{key}"
    return name + ending[0] if ending and key in ("path", "public") else name


def spec_digest(spec: Spec) -> bytes:
    """Return 32 bytes that name everything of a spec but the places of files."""
    text = spec_to_toml(without_paths(spec))
    return hashlib.blake2b(text.encode(), digest_size=32, person=b"p2pdp spec 1").digest()
