from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.happenings import Happening
from p2pdp.index.facts import RunFacts
from p2pdp.index.store import Index, IndexBroken
from p2pdp.runs.indexing import INDEX_FILE, Refresher, index_folders, index_url
from tests.support.across_specs import spec_of


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("indexing") / "run"
    p2pdp.simulate(spec_of(), found)
    return found


class Shaky(Index):
    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)

    def write(self, facts: RunFacts) -> None:
        error = self.errors.pop(0)
        if error is not None:
            raise error


def test_a_broken_index_is_told_once_and_once_more_when_it_is_whole(place: Path) -> None:
    told: list[Happening] = []
    errors = (IndexBroken("away"), IndexBroken("away"), None, None, ZeroDivisionError("a secret"), None)
    refresher = Refresher(Shaky(*errors), place, told.append)
    for _ in errors:
        refresher.refresh()
    assert [each.event for each in told] == ["index_broken", "index_whole", "index_broken", "index_whole"]
    assert "(away)" in told[0].text
    assert "secret" not in told[2].text


def test_a_folder_that_cannot_be_read_breaks_no_run(tmp_path: Path) -> None:
    told: list[Happening] = []
    Refresher(Shaky(), tmp_path, told.append).refresh()
    assert [each.event for each in told] == ["index_broken"]


def test_folders_are_written_listed_and_written_anew(place: Path) -> None:
    listed = index_folders([place], None, rebuild=False)
    assert (listed["total"], listed["written"]) == (1, [listed["runs"][0]["run_id"]])
    (place / "index.sqlite").unlink()
    assert index_folders([place], "sqlite", rebuild=True) == listed
    again = index_folders([], f"sqlite:///{place / 'index.sqlite'}", rebuild=False)
    assert (again["written"], again["runs"]) == ([], listed["runs"])


def test_a_folder_is_a_path_whatever_its_name_would_mean_in_an_address(place: Path, tmp_path: Path) -> None:
    copied = tmp_path / "which?one=%41#x"
    shutil.copytree(place, copied, ignore=shutil.ignore_patterns(INDEX_FILE))
    listed = index_folders([copied], "sqlite", rebuild=False)
    assert (listed["total"], (copied / INDEX_FILE).is_file()) == (1, True)
    assert Index(index_url("sqlite", copied)).runs(9, 0)["runs"] == listed["runs"]
    assert [path.name for path in tmp_path.iterdir()] == [copied.name]


def test_what_is_missing_is_said(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a run's folder"):
        index_folders([], None, rebuild=False)
    with pytest.raises(UsageError, match="--index sqlite"):
        index_folders([], "sqlite", rebuild=False)
    with pytest.raises(UsageError, match=tmp_path.name):
        index_folders([tmp_path], None, rebuild=False)
    with pytest.raises(NotReady, match="--index:"):
        index_folders([place], f"sqlite:///{tmp_path / 'absent' / 'x'}", rebuild=False)


def test_the_file_of_an_index_is_its_owners_only(place: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(place, tmp_path / "run", ignore=shutil.ignore_patterns(INDEX_FILE))
    elsewhere = tmp_path / "runs.sqlite"
    for given, file in (("sqlite", folder / INDEX_FILE), (f"sqlite:///{elsewhere}", elsewhere)):
        index_folders([folder], given, rebuild=False)
        assert file.stat().st_mode & 0o777 == 0o600
