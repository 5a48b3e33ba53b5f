"""What `init` writes is its sample, and what stands there as a comment is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.files.checks import applies
from p2pdp.files.node_config import NODE_SECTIONS
from p2pdp.files.samples import NODE, Sample, sample, samples
from p2pdp.files.schema import sections_of
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.files.starter import starter, written

ALL = pytest.mark.parametrize("one", samples(), ids=lambda one: one.name)
DEFAULT = re.compile(r"^# (\w+) = (?!…)(.+)$")


@ALL
def test_what_is_written_is_the_sample(one: Sample) -> None:
    assert parse_spec(starter(one), one.path.parent) == load_spec(one.path)


@ALL
def test_every_line_fits_and_the_sample_says_what_it_shows(one: Sample) -> None:
    text = starter(one)
    assert max(map(len, text.splitlines())) <= 120
    assert " ".join(text.replace("\n#", " ").split()).startswith(f"# {one.shows}")


@ALL
def test_defaults_that_stand_there_are_the_defaults(one: Sample) -> None:
    """Each commented default that has a meaning in this spec is set, one by one, and changes nothing."""
    spec, section, shown = load_spec(one.path), "", 0
    for line in starter(one).splitlines():
        head = re.match(r"^(?:# )?\[(\w+)\]$", line)
        section = head[1] if head else section
        match = DEFAULT.match(line)
        if match is None or not applies(spec, f"{section}.{match[1]}") or match[1] in ("encoding", "weights"):
            continue
        if section == "task" and match[1] == "kind":  # its default is the protocol's
            continue
        assert load_spec(one.path, [f"{section}.{match[1]}={match[2]}"]) == spec, line
        shown += 1
    assert shown >= 3


@ALL
def test_every_key_of_the_protocol_is_there_or_said_to_have_no_meaning(one: Sample) -> None:
    text, spec = starter(one), load_spec(one.path)
    for name, section in sections_of(spec.run.protocol).items():
        part = text.partition(f"[{name}]")[2]
        for key in section.readers:
            if applies(spec, f"{name}.{key}"):
                assert re.search(rf"^(# )?{key} = ", part, re.MULTILINE), f"{name}.{key}"


def test_a_node_is_told_of_all_that_it_can_demand() -> None:
    text, given = starter(sample(NODE)), sample(NODE).document
    assert tomllib.loads(text) == given
    for name, readers in NODE_SECTIONS.items():
        for key in readers:
            assert re.search(rf"^(# )?{key} = ", text.partition(f"[{name}]")[2], re.MULTILINE)


def test_data_come_along_and_the_file_plans(tmp_path: Path) -> None:
    files = written(sample("vector_sum"), tmp_path / "mine.toml")
    assert files == [tmp_path / "mine.toml", tmp_path / "vector_sum.csv"]
    assert p2pdp.plan(files[0]).nodes == 40


def test_all_data_of_a_sample_are_written_as_they_are(tmp_path: Path) -> None:
    files = written(sample("digits"), tmp_path / "mine.toml")
    assert [one.name for one in files] == ["mine.toml", "digits.csv.gz", "digits_public.csv.gz"]
    assert files[2].read_bytes() == (sample("digits").path.parent / files[2].name).read_bytes()
    written(sample("digits"), tmp_path / "again.toml")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    written(sample("ring_sum"), tmp_path / "mine.toml")
    with pytest.raises(UsageError, match=r"mine\.toml: exists already"):
        written(sample("ring_sum"), tmp_path / "mine.toml")
    (tmp_path / "vector_sum.csv").write_text("mine\n")
    with pytest.raises(UsageError, match=r"vector_sum\.csv: exists already"):
        written(sample("vector_sum"), tmp_path / "other.toml")
    assert not (tmp_path / "other.toml").exists()
    written(sample("walk_sgd"), tmp_path / "a.toml")
    written(sample("walk_sgd"), tmp_path / "b.toml")  # the same data may be there already


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        written(sample("ring_sum"), tmp_path / "none" / "mine.toml")


@pytest.mark.parametrize("name", ["clinics", "clinic"])
def test_made_up_rows_of_owners_come_along(name: str, tmp_path: Path) -> None:
    files = written(sample(name), tmp_path / f"{name}.toml")
    rows = [tmp_path / "clinics" / f"{clinic}.csv" for clinic in range(1, 6)]
    assert files == [tmp_path / f"{name}.toml", *rows]
    assert all(place.read_text().startswith("hours\n") for place in rows)
    (tmp_path / f"{name}.toml").unlink()
    assert written(sample(name), tmp_path / f"{name}.toml") == files, "rows that are there stay"
