from __future__ import annotations

import pytest

from p2pdp.files.meanings import MEANINGS, SECTION_MEANINGS
from p2pdp.files.node_config import NODE_SECTIONS
from p2pdp.files.schema import SECTIONS
from p2pdp.protocols import ours, protocol
from p2pdp.protocols.options import Options

KEYS = [f"{name}.{key}" for name, section in SECTIONS.items() for key in section.readers]
NODE_KEYS = [f"{name}.{key}" for name, readers in NODE_SECTIONS.items() for key in readers]


def test_each_key_and_section_has_a_meaning_and_nothing_else_has() -> None:
    assert sorted(MEANINGS) == sorted([*KEYS, *NODE_KEYS])
    assert sorted(SECTION_MEANINGS) == sorted([*SECTIONS, *NODE_SECTIONS])


def owned() -> dict[str, Options]:
    """The options of our families, by section."""
    found = [protocol(name).options for name in ours()]
    return {options.section: options for options in found if options is not None}


def test_each_key_of_a_family_has_a_meaning_and_nothing_else_has() -> None:
    assert len(owned()) == 4
    for options in owned().values():
        assert sorted(options.meanings) == sorted(options.readers)


@pytest.mark.parametrize("section", owned())
def test_meanings_of_families_are_sentences(section: str) -> None:
    for said in [owned()[section].meaning, *owned()[section].meanings.values()]:
        assert said.endswith(".")
        assert said[0].isupper() or said[0] == "`"


@pytest.mark.parametrize("name", [*MEANINGS, *SECTION_MEANINGS])
def test_meanings_are_sentences(name: str) -> None:
    said = MEANINGS.get(name) or SECTION_MEANINGS[name]
    assert said.endswith(".")
    assert said[0].isupper() or said[0] == "`"
