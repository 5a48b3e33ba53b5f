"""What p2pdp reads the schemas accept; wrong keys, types and sections they refuse."""

from __future__ import annotations

import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from p2pdp.core.errors import UsageError
from p2pdp.core.readers import Unfit
from p2pdp.files.json_schema import json_schema
from p2pdp.files.node_config import NODE_SECTIONS
from p2pdp.files.samples import SAMPLES, samples
from p2pdp.files.schema import all_sections, sections_of
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.protocols import names
from tests.contracts.frozen import _SMALL
from tests.support.readers import KEYS

SPEC = Draft202012Validator(json_schema("spec"))
NODE = Draft202012Validator(json_schema("node"))
VALUES: tuple[Any, ...] = (
    True, 0, 1, -1, 2.5, 1e9, 10**12, 0.5, "", "x", "auto", "tcp", "gaussian", "< 3", "2030-01-31T12:00:00Z",
    [], [1], [0, 1], ["a"], ["a", "a"], [0, 1, 2], {}, {"low": [0], "high": [1]},
)  # fmt: skip


def plain(value: Any) -> Any:
    """A document of TOML as editors hand it to a schema: dates are texts."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def without_conditions(section: str, key: str) -> Draft202012Validator:
    known = {**json_schema("node")["properties"], **json_schema("spec")["properties"]}
    return Draft202012Validator(known[section]["properties"][key])


@pytest.mark.parametrize("of", ["spec", "node"])
def test_they_are_schemas(of: str) -> None:
    Draft202012Validator.check_schema(json_schema(of))
    with pytest.raises(UsageError, match="did you mean"):
        json_schema(of + "s")


@pytest.mark.parametrize("sample", samples(), ids=lambda one: one.name)
def test_samples_fit_and_their_effective_specs_too(sample: Any) -> None:
    SPEC.validate(sample.document)
    SPEC.validate(tomllib.loads(spec_to_toml(parse_spec(sample.text, None))))


def test_the_configuration_of_a_node_fits() -> None:
    document = tomllib.loads((SAMPLES / "nodes" / "node.toml").read_text())
    NODE.validate(document)
    assert not NODE.is_valid({**document, "walk": {}})
    assert not NODE.is_valid({**document, "accept": {"sigma_mni": 1.0}})
    assert not NODE.is_valid({**document, "node": {"identity": "a"}})


@pytest.mark.parametrize("sample", samples(), ids=lambda one: one.name)
def test_every_wrong_key_and_missing_section_is_refused(sample: Any) -> None:
    for section, table in sample.document.items():
        assert not SPEC.is_valid({**sample.document, section: {**table, "wrong": 1}})
    for section in ("run", "graph", "noise", "data"):
        assert not SPEC.is_valid({name: table for name, table in sample.document.items() if name != section})
    assert not SPEC.is_valid({**sample.document, "wlak": {}})


@pytest.mark.parametrize("protocol", names())
def test_a_section_of_another_protocol_is_refused(protocol: str) -> None:
    document = next(one.document for one in samples() if one.document["run"]["protocol"] == protocol)
    foreign = [name for name in all_sections() if name not in sections_of(protocol)]
    assert foreign
    assert [name for name in foreign if SPEC.is_valid({**document, name: {}})] == []


def test_a_key_that_another_protocol_takes_is_refused() -> None:
    ring = next(one.document for one in samples() if one.name == "ring_sum")
    assert not SPEC.is_valid({**ring, "task": {"kind": "sum", "rounds": 3}})
    assert SPEC.is_valid({**ring, "noise": {**ring["noise"], "closing": False}})


@pytest.mark.parametrize("name", [*KEYS, *(f"{one}.{key}" for one, keys in NODE_SECTIONS.items() for key in keys)])
def test_what_a_reader_takes_the_schema_takes_and_of_other_types_nothing(name: str) -> None:
    section, _, key = name.partition(".")
    reader = NODE_SECTIONS[section][key] if section in NODE_SECTIONS else all_sections()[section].readers[key]
    schema = without_conditions(section, key)
    for value in VALUES:
        try:
            reader(value)
        except Unfit:
            continue
        assert schema.is_valid(value), (name, value)
    assert not schema.is_valid(None)
    assert sum(not schema.is_valid(value) for value in VALUES) >= 5


def test_dates_are_texts() -> None:
    text = _SMALL["ring"].replace("[graph]", "expires = 2030-01-31T12:00:00Z\n[graph]", 1)
    parse_spec(text, None)
    SPEC.validate(plain(tomllib.loads(text)))


@pytest.mark.parametrize("text", _SMALL.values(), ids=_SMALL)
def test_small_specs_fit(text: str) -> None:
    SPEC.validate(tomllib.loads(text))


def test_samples_are_in_the_package() -> None:
    assert Path(__file__).parents[2] / "p2pdp" / "samples" == SAMPLES
