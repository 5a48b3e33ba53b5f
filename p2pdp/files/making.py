"""Specs from what a caller in Python has at hand: a file, a mapping, another spec, changes, data and a graph.

Guarantee: whatever it is made from, a spec passes the checks of a file, and is refused in the words that a file would
get. A mapping reads like the file: sections, or single keys named `section.key`; None takes a key out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.checks import why_not
from p2pdp.files.given import GRAPH_FILE, Given, given_data, given_edges
from p2pdp.files.reading import read_text
from p2pdp.files.schema import sections_of
from p2pdp.files.spec import read_document, spec_to_toml
from p2pdp.files.tables import edges_of, largest_component
from p2pdp.protocols import protocol
from p2pdp.topology.graphs import EdgeList, is_public

Source = Spec | Mapping[str, Any] | str | Path
_OF_FILES: Final = ("path", "header", "separator")
_OF_GRAPHS: Final = ("public", "weights")  # what is public depends on the kind


def make_spec(
    source: Source, changes: Mapping[str, Any] | None = None, data: Any = None, graph: Any = None, public: Any = None
) -> Spec:
    """Return a checked spec of this source with these changes, data, graph and public rows to score models on."""
    place = Path(source) if isinstance(source, str | Path) else None
    try:
        return with_public(_made(source, changes or {}, data, graph), public)
    except UsageError as error:
        if place is None or str(error).startswith(f"{place}: "):
            raise
        raise UsageError(f"{place}: {error}") from None


def _made(source: Source, changes: Mapping[str, Any], data: Any, graph: Any) -> Spec:
    document, base = _document(source)
    before = source if isinstance(source, Spec) else None
    for name, value in changes.items():
        _change(document, str(name), value)
    edges = _kept_edges(before, document) if graph is None else _edges(graph)
    if graph is not None:
        _put_graph(document, GRAPH_FILE)
        if data is not None and edges is not None and not isinstance(data, Mapping):
            _check_whole(graph, edges, data)
    rows = before.data.own if before is not None and _kind(document, "data") == "own" else None
    if data is not None:
        rows = given_data(data, None if edges is None else edges.labels)
        _put_data(document, rows)
    spec = read_document(document, base, edges)
    if edges is not None:  # its file is in the folder of a run, beside the spec
        spec = replace(spec, graph=replace(spec.graph, path=GRAPH_FILE))
    task = before.task.own if before is not None and spec.task.kind == "own" else None
    public = None if before is None else before.data.public_own
    return replace(spec, data=replace(spec.data, own=rows, public_own=public), task=replace(spec.task, own=task))


def with_public(spec: Spec, public: Any) -> Spec:
    """Return the spec with the caller's public rows in place of `[data] public`."""
    if public is None:
        return spec
    reason = why_not(spec, "data.public")
    if reason is not None:
        raise UsageError(f"public: {reason}")
    own = given_data(public)
    if own.starts is not None:
        raise UsageError("public: must be one table, and not one for each user.")
    return replace(spec, data=replace(spec.data, public=None, public_own=own))


def with_data(spec: Spec, data: Any, folder: Path) -> Spec:
    """Return the spec of a folder with the data that its run was begun with, given once more."""
    if data is None:
        return spec
    if spec.data.kind != "own":
        raise UsageError(f"data: this run reads {spec.data.kind} data by itself; leave data out")
    edges = edges_of(spec.graph, folder)
    own = given_data(data, None if edges is None else edges.labels)
    return replace(spec, data=replace(spec.data, own=own))


def _document(source: Source) -> tuple[dict[str, Any], Path]:
    """Return a document as TOML would give it, and the folder that its paths are relative to."""
    if isinstance(source, Mapping):
        document: dict[str, Any] = {}
        for name, value in source.items():
            _change(document, str(name), value)
        return document, Path()
    if isinstance(source, Spec):
        return _without_filled(source), Path()
    if not isinstance(source, str | Path):
        raise UsageError(f"A spec is a file, a mapping or a p2pdp.Spec, and no {type(source).__name__}.")
    try:
        return tomllib.loads(read_text(Path(source))), Path(source).parent
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The spec is not TOML: {error}.") from None


def _without_filled(spec: Spec) -> dict[str, Any]:
    """Return the document of a spec without what is filled in again from the rest."""
    try:
        document = tomllib.loads(spec_to_toml(spec))
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"The spec holds what no spec file could say: {error}.") from None
    filled: dict[str, Any] = {
        "run.min_nodes": spec.run.nodes,
        "graph.public": is_public(replace(spec.graph, public=None)),
        "task.kind": protocol(spec.run.protocol).default_task,
    }
    for name, section in sections_of(spec.run.protocol).items():
        defaults = {field.name: field.default for field in fields(section.part)}
        table = document.get(name, {})
        for key in [*table]:
            if table[key] == filled.get(f"{name}.{key}", defaults[section.field_of(key)]):
                del table[key]
    return document


def _change(document: dict[str, Any], name: str, value: Any) -> None:
    """Put a section or a key, named `section.key`, into a document; sections are merged key by key."""
    section, dot, key = name.partition(".")
    if not dot:
        if not isinstance(value, Mapping):
            document[section] = _plain(value)  # refused by name when it is read
            return
        for inner, entry in value.items():
            _change(document, f"{section}.{inner}", entry)
        document.setdefault(section, {})
        return
    table = document.setdefault(section, {})
    if isinstance(table, dict):
        if value is None:
            table.pop(key, None)
        else:
            table[key] = _plain(value)


def _plain(value: Any) -> Any:
    """Return a value as TOML would give it; what no file can say is left for the reader of its key to refuse."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_plain(entry) for entry in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        return value.tolist()
    return value


def _kind(document: Mapping[str, Any], section: str) -> Any:
    table = document.get(section)
    return table.get("kind") if isinstance(table, dict) else None


def _kept_edges(before: Spec | None, document: Mapping[str, Any]) -> EdgeList | None:
    """Return the edges that a spec came with, as long as its graph is still that."""
    if before is None or before.graph.own is None or _kind(document, "graph") != "file":
        return None
    own: EdgeList = before.graph.own
    return own if document["graph"].get("path") == GRAPH_FILE else None


def _edges(graph: Any) -> EdgeList:
    if isinstance(graph, EdgeList):
        return graph
    pairs = given_edges(graph)
    if not any(a != b for a, b in pairs):
        raise UsageError("graph: has no edges.")
    found = largest_component(pairs)
    # As a file of this component alone would number its nodes, for that file is what the folder of a run has.
    return largest_component([(found.labels[u], found.labels[v]) for u, v in found.edges.tolist()])


def _check_whole(graph: Any, edges: EdgeList, data: Any) -> None:
    """Refuse a row or a table for each node where some nodes take no part: the others would get rows of theirs."""
    counted = getattr(graph, "number_of_nodes", None)
    nodes = counted() if callable(counted) else getattr(graph, "shape", (len(edges.labels),))[0]
    if nodes > len(edges.labels) and hasattr(data, "__len__") and len(data) == nodes:
        raise UsageError(
            f"graph: {nodes - len(edges.labels)} of its {nodes} nodes are not in the largest component and take no "
            "part; give data as a dict by label, so that rows stay with their owners."
        )


def _put_graph(document: dict[str, Any], path: str) -> None:
    """Put the caller's graph into a document, in place of what was there but for keys of any graph."""
    table = document.get("graph", {})
    if isinstance(table, dict):
        if "kind" in table:
            table = {key: table[key] for key in _OF_GRAPHS[table["kind"] != "file" :] if key in table}
        document["graph"] = {**table, "kind": "file", "path": path}


def _put_data(document: dict[str, Any], rows: Given) -> None:
    """Put the caller's data into a document: bounds and columns stay, and what says how a file is read goes.

    Of features and a target that were given together, the last column is the target.
    """
    table = document.get("data", {})
    if isinstance(table, dict):
        synthetic = "kind" in table and table["kind"] not in ("csv", "npy", "own")
        stale = () if "kind" not in table else _OF_FILES
        kept = {key: value for key, value in table.items() if key not in stale and (not synthetic or key == "clip")}
        target = {} if rows.target is None else {"target": rows.target}
        document["data"] = {**kept, **target, "kind": "own"}
