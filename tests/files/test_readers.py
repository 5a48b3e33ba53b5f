"""Readers of single values; those of a spec's keys together are in test_schema.py."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.readers import Distinct, Either, Reader, Unfit, Whole, columns, limits, number, one_of, truth
from p2pdp.files.schema import SECTIONS, read_section
from tests.laws.sources import TOP

COUNTS = {
    f"{name}.{key}": found
    for name, section in SECTIONS.items()
    for key, reader in section.readers.items()
    if (found := limits(reader)) is not None
}


def given(reader: Reader, value: int) -> Any:
    return [value] if isinstance(reader, Distinct) or reader is columns else value


def test_whole_numbers_have_two_limits() -> None:
    reader = Whole(2, 5)
    assert [reader(value) for value in (2, 5)] == [2, 5]
    for value in (1, 6, 10**400, True, 2.0, "2"):
        with pytest.raises(Unfit):
            reader(value)


def test_limits_are_found_within_other_readers() -> None:
    count = Whole(1, 2)
    assert limits(count) == limits(Either(one_of("auto"), count)) == limits(Distinct(count)) == count
    assert limits(truth) is limits(number()) is limits(Distinct(truth)) is None


@pytest.mark.parametrize("name", COUNTS)
def test_every_count_of_a_spec_is_refused_above_its_limit_by_name(name: str) -> None:
    section, _, key = name.partition(".")
    reader, most = SECTIONS[section].readers[key], COUNTS[name].most
    read_section(section, {key: given(reader, most)})
    with pytest.raises(UsageError, match=rf"\[{section}\] {key}: .*at most {most:,}"):
        read_section(section, {key: given(reader, most + 1)})


def test_the_guide_lists_every_limit() -> None:
    rows = [f"| `[{name.partition('.')[0]}] {name.partition('.')[2]}` | {one.most:,} |" for name, one in COUNTS.items()]
    page = (TOP / "p2pdp" / "guide" / "limits.md").read_text().splitlines()
    assert [line for line in page if line.startswith("| `[")] == rows
