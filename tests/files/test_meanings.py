from __future__ import annotations

import pytest

from p2pdp.files.meanings import MEANINGS, SECTION_MEANINGS
from p2pdp.files.node_config import NODE_SECTIONS
from p2pdp.files.schema import SECTIONS

KEYS = [f"{name}.{key}" for name, section in SECTIONS.items() for key in section.readers]
NODE_KEYS = [f"{name}.{key}" for name, readers in NODE_SECTIONS.items() for key in readers]


def test_each_key_and_section_has_a_meaning_and_nothing_else_has() -> None:
    assert sorted(MEANINGS) == sorted([*KEYS, *NODE_KEYS])
    assert sorted(SECTION_MEANINGS) == sorted([*SECTIONS, *NODE_SECTIONS])


@pytest.mark.parametrize("name", [*MEANINGS, *SECTION_MEANINGS])
def test_meanings_are_sentences(name: str) -> None:
    said = MEANINGS.get(name) or SECTION_MEANINGS[name]
    assert said.endswith(".")
    assert said[0].isupper() or said[0] == "`"
