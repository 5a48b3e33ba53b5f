"""JSON Schemas (draft 2020-12) of specs and node configurations, for editors and for checks before p2pdp runs.

They are made from the tables of `files/schema.py`, the options of all protocols that are installed, and the meanings
of the guide's reference. What p2pdp accepts the schema accepts. The reverse does not hold: of the rules on what goes
together (`files/checks.py`) the schema knows only which protocol takes which key.

TOML's dates have no type in JSON: a schema sees them as texts, as editors show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core import readers
from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.core.readers import Distinct, Either, Number, OneOf, Reader, Whole, suggestion
from p2pdp.files import schema
from p2pdp.files.node_config import NODE_NEEDED, NODE_SECTIONS, code_digest, listen_address, told_address
from p2pdp.files.reference import default_value, meaning, section_meaning, taking
from p2pdp.files.schema import SECTIONS, Section, sections_of
from p2pdp.protocols import names, ours, protocol
from p2pdp.tasks.named import OBJECTIVES
from p2pdp.transports import registry

Schema = dict[str, Any]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_COLUMN: Final[Schema] = {"anyOf": [_TEXT, {"type": "integer", "minimum": 0, "maximum": 1_000_000}]}
_NUMBERS: Final[Schema] = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_RANGES: Final[Schema] = {
    "type": "object",
    "properties": {"low": _NUMBERS, "high": _NUMBERS},
    "required": ["low", "high"],
    "additionalProperties": False,
}
_ESTIMATES: Final[Schema] = {
    "type": "object",
    "properties": {
        "mean": _NUMBERS,
        "deviation": {**_NUMBERS, "items": {"type": "number", "exclusiveMinimum": 0}},
        "epsilon": {"type": "number", "exclusiveMinimum": 0},
        "delta": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    },
    "required": ["mean", "deviation", "epsilon", "delta"],
    "additionalProperties": False,
}


def json_schema(of: str) -> Schema:
    """Return the schema of a `spec`, or of a `node`'s configuration."""
    kinds = {"spec": _spec_schema, "node": _node_schema}
    if of not in kinds:
        raise UsageError(f"--of {of}: there is no such schema{suggestion(of, kinds)}")
    return {"$schema": DIALECT, **kinds[of]()}


def _spec_schema() -> Schema:
    sections: dict[str, Section] = {}
    for name in names():
        sections |= sections_of(name)
    return {
        "title": "Spec of a p2pdp run",
        "type": "object",
        "properties": {name: _section_schema(name, section) for name, section in sections.items()},
        "required": ["run", "graph", "noise", "data"],
        "additionalProperties": False,
        "allOf": [_of_protocol(name, sections) for name in names()],
    }


def _section_schema(name: str, section: Section) -> Schema:
    properties = {}
    for key, reader in section.readers.items():
        properties[key] = {**_of_reader(reader), "description": meaning(name, key).replace("`", "")}
        default = default_value(name, key, section)
        if default is not None:
            properties[key]["default"] = list(default) if isinstance(default, tuple) else default
    required = [key for key in section.required if (name, key) not in (("run", "nodes"), ("task", "kind"))]
    return _table(section_meaning(name), properties, required)


def _table(what: str, properties: Mapping[str, Schema], required: list[str]) -> Schema:
    table: Schema = {"type": "object", "description": what.replace("`", ""), "properties": dict(properties)}
    return {**table, **({"required": required} if required else {}), "additionalProperties": False}


def _of_protocol(name: str, sections: Mapping[str, Section]) -> Schema:
    """Return what holds for the specs of one protocol: the sections and keys that it takes, and those that it needs."""
    own, takers = sections_of(name), taking() if name in ours() else {}
    properties: dict[str, Any] = {other: False for other in sections if other not in own}
    needed = []
    for section, table in own.items():
        untaken = [key for key in table.readers if name not in takers.get(f"{section}.{key}", [name])]
        if untaken:
            properties[section] = {"properties": dict.fromkeys(untaken, False)}
        if section not in SECTIONS and table.required:
            needed.append(section)
    if protocol(name).default_task is None:
        properties["task"] = {**properties.get("task", {}), "required": ["kind"]}
        needed.append("task")
    then: Schema = {"properties": properties, **({"required": needed} if needed else {})}
    is_it = {"properties": {"run": {"properties": {"protocol": {"const": name}}, "required": ["protocol"]}}}
    return {"if": is_it, "then": then}


def _node_schema() -> Schema:
    properties: dict[str, Schema] = {}
    for name, own in NODE_SECTIONS.items():
        keys = {
            key: {**_of_reader(reader), "description": meaning(name, key).replace("`", "")}
            for key, reader in own.items()
        }
        properties[name] = _table(section_meaning(name), keys, list(NODE_NEEDED.get(name, ())))
    for name in ("data", "transport"):
        properties[name] = _section_schema(name, SECTIONS[name])
    return {
        "title": "Configuration of a p2pdp node",
        "type": "object",
        "properties": properties,
        "required": ["node", "data"],
        "additionalProperties": False,
    }


def _of_reader(reader: Reader) -> Schema:
    """Return the schema of what a reader takes; a reader that nobody here knows may take anything."""
    if isinstance(reader, Whole):
        return {"type": "integer", "minimum": reader.least, "maximum": reader.most}
    if isinstance(reader, Number):
        limits = {
            "exclusiveMinimum": reader.above,
            "minimum": reader.least,
            "exclusiveMaximum": reader.below,
            "maximum": reader.most,
        }
        return {"type": "number", **{name: limit for name, limit in limits.items() if limit is not None}}
    if isinstance(reader, OneOf):
        return {"enum": list(reader.names)}
    if isinstance(reader, Either):
        return {"anyOf": [_of_reader(reader.names), _of_reader(reader.reader)]}
    if isinstance(reader, Distinct):
        return {"type": "array", "items": _of_reader(reader.reader), "uniqueItems": True}
    return dict(_known().get(reader, {}))


def _known() -> dict[Reader, Schema]:
    """Return the schemas of readers that are plain functions."""
    return {
        readers.truth: {"type": "boolean"},
        readers.text: _TEXT,
        readers.sentence: {"type": "string", "minLength": 1, "maxLength": readers.SENTENCE_MAX},
        readers.bounds: {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        readers.columns: {"type": "array", "items": _COLUMN, "minItems": 1, "uniqueItems": True},
        readers.separator: {"type": "string", "minLength": 1, "maxLength": 1},
        readers.rule: {"type": "string", "pattern": readers.RULE.pattern},
        readers.standards: {"anyOf": [_RANGES, _ESTIMATES]},
        readers.moment: _TEXT,
        schema.protocol_name: {"enum": names()},
        schema.task_kind: {"enum": [*schema.TASKS, *sorted(installed(OBJECTIVES))]},
        schema.place_in_code: {"type": "string", "pattern": "^[^:]+:[^:]+$"},
        schema.loss: _TEXT,
        schema.transport_name: {"enum": sorted(registry.names())},
        listen_address: _TEXT,
        told_address: _TEXT,
        code_digest: {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    }
