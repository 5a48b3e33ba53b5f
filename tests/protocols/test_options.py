from __future__ import annotations

import dataclasses

import pytest

from p2pdp.protocols import ours, protocol
from p2pdp.protocols.options import Options, Rules

OWNED = [options for name in ours() if (options := protocol(name).options) is not None]


def test_a_section_needs_no_rules() -> None:
    options = Options("drift", dataclasses.make_dataclass("Part", []), {})
    assert options.rules == Rules({}, {}, ())


@pytest.mark.parametrize("options", OWNED, ids=[name for name in ours() if protocol(name).options])
def test_readers_cover_exactly_the_fields(options: Options) -> None:
    fields = {field.name for field in dataclasses.fields(options.part)}
    assert {options.renamed.get(key, key) for key in options.readers} == fields


@pytest.mark.parametrize("options", OWNED, ids=[name for name in ours() if protocol(name).options])
def test_reasons_are_sentences(options: Options) -> None:
    for table in (options.rules.only, options.rules.needed):
        assert all(reason.endswith(".") for _, reason in table.values())
