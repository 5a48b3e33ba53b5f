from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from p2pdp.core import spec as spec_module
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.files.schema import SECTIONS


def small() -> Spec:
    return Spec(RunPart("walk.sum", 4), GraphPart("ring"), NoisePart("none"), DataPart("uniform"), TaskPart("sum"))


def test_defaults_are_those_of_the_contract() -> None:
    spec = small()
    run = spec.run
    assert (run.transport, run.durability, run.patience_s, run.enrol_timeout_s) == ("tcp", "process", 10.0, 60.0)
    assert (run.seed, run.min_nodes, run.expires, run.audit) == (None, None, None, True)
    assert (spec.noise.closing, spec.noise.share, spec.noise.sampler) == (True, False, "exact")
    assert spec.privacy == PrivacyPart(None, "user", (), None)
    assert spec.options is None


def parts_of(value: Any) -> list[type]:
    return [kind for name, kind in vars(value).items() if name.endswith("Part")]


@pytest.mark.parametrize("part", [*parts_of(spec_module), Spec], ids=lambda part: part.__name__)
def test_each_part_is_frozen(part: type) -> None:
    parameters = part.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    assert "__dict__" not in dir(part)


def test_equal_specs_are_equal_and_a_change_makes_another() -> None:
    assert small() == small()
    changed = dataclasses.replace(small(), run=dataclasses.replace(small().run, nodes=5))
    assert changed != small()
    assert small().run.nodes == 4


def test_every_section_of_the_file_is_a_field_and_the_other_way_round() -> None:
    """`options` holds the section that the protocol owns, under a name of its own."""
    assert {field.name for field in dataclasses.fields(Spec)} - {"options"} == set(SECTIONS)
