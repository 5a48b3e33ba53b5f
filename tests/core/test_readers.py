"""Readers of single values; those of a spec's keys together are in test_schema.py."""

from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.readers import (
    Distinct,
    Either,
    Unfit,
    Whole,
    described,
    limits,
    number,
    one_of,
    truth,
)
from p2pdp.files.schema import all_sections, read_section
from tests.support.readers import COUNTS, KEYS, given
from tests.support.sources import TOP


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
    reader, most = all_sections()[section].readers[key], COUNTS[name].most
    read_section(section, {key: given(reader, most)}, all_sections())
    with pytest.raises(UsageError, match=rf"\[{section}\] {key}: .*at most {most:,}"):
        read_section(section, {key: given(reader, most + 1)}, all_sections())


def test_the_guide_lists_every_limit() -> None:
    """In the entry of its key, in its section."""
    page = (TOP / "p2pdp" / "guide" / "spec.md").read_text()
    for name, one in COUNTS.items():
        section, _, key = name.partition(".")
        entries = page.partition(f"## `[{section}]`")[2].partition("\n## ")[0]
        entry = next(line for line in entries.splitlines() if line.startswith(f"* **`{key}`**"))
        assert f"from {one.least} to {one.most:,}" in entry


def test_what_a_reader_takes_is_said() -> None:
    assert described(number(above=0, below=1)) == "number, above 0, below 1"
    assert described(number(least=0, most=2.5)) == "number, at least 0, at most 2.5"
    assert (
        described(Either(one_of("auto", "all"), Whole(1, 2000))) == 'whole number from 1 to 2,000, or `"auto"`, `"all"`'
    )
    assert described(Distinct(truth)) == "list of distinct entries, each: `true` or `false`"


@pytest.mark.parametrize("name", KEYS)
def test_every_reader_of_a_spec_says_what_it_takes(name: str) -> None:
    section, _, key = name.partition(".")
    assert described(all_sections()[section].readers[key])


def test_the_most_of_a_number_is_allowed() -> None:
    reader = number(above=0, most=1)
    assert reader(1) == 1.0
    for value in (0, 1.0000000001):
        with pytest.raises(Unfit):
            reader(value)
