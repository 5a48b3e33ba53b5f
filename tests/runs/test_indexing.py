from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, P2pdpError, UsageError
from p2pdp.core.happenings import Happening
from p2pdp.index.facts import RunFacts
from p2pdp.index.store import Index, IndexBroken
from p2pdp.runs.indexing import INDEX_FILE, Refresher, facts_of, index_folders, opened_index
from tests.support.across_specs import TEXT, spec_of


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
    assert opened_index("sqlite", copied).runs(9, 0)["runs"] == listed["runs"]
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


@pytest.fixture(scope="module")
def place_index_facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("facts") / "run"
    p2pdp.simulate(spec_of(), found)
    return found


def test_a_folder_tells_all_that_the_index_holds(place_index_facts: Path) -> None:
    facts = facts_of(place_index_facts)
    result, audited = p2pdp.audit(place_index_facts), facts.claims
    assert (facts.run_id, facts.protocol, facts.nodes, facts.n, facts.state) == (
        result.run_id, "walk.sum", 4, 4, "done",
    )  # fmt: skip
    assert [claim.document["method"] for claim in audited] == [claim.method for claim in result.claims]
    assert [one.state for one in facts.participants] == ["finished"] * 4
    assert sorted(one.user for one in facts.participants if one.user is not None) == [0, 1, 2, 3]
    assert all(len(one.identity) == 64 for one in facts.participants)
    names = [event.event for event in facts.events]
    assert (names.count("enrolled"), names[4], names.count("ready"), names[-1]) == (4, "roster", 4, "closed")
    assert names.index("begun") < names.index("published") < names.index("closed")
    times = [event.at_s for event in facts.events]
    assert times == sorted(times)
    assert facts_of(place_index_facts) == facts


def test_the_number_of_events_does_not_tell_the_number_of_messages(place_index_facts: Path, tmp_path: Path) -> None:
    p2pdp.simulate(spec_of(TEXT.replace("hops = 30", "hops = 300")), tmp_path / "long")
    assert len(facts_of(tmp_path / "long").events) == len(facts_of(place_index_facts).events)


def test_a_run_that_has_begun_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        facts_of(tmp_path)
    (tmp_path / "spec.toml").write_text(TEXT)
    with pytest.raises(UsageError, match="begun"):
        facts_of(tmp_path)
    (tmp_path / "run.json").write_text('{"run_id": "ab", "started": "2030-01-01T00:00:00+00:00"}')
    facts = facts_of(tmp_path)
    assert (facts.run_id, facts.state, facts.n, facts.participants) == ("ab", "enrolling", None, [])


def test_a_damaged_ledger_is_no_half_of_a_truth(place_index_facts: Path, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(TEXT)
    (tmp_path / "run.json").write_text('{"run_id": "ab", "started": "x"}')
    ledger = tmp_path / "curator" / "bootstrap" / "view.ledger"
    ledger.parent.mkdir(parents=True)
    whole = (place_index_facts / "curator" / "bootstrap" / "view.ledger").read_bytes()
    ledger.write_bytes(whole[:-5])
    assert facts_of(tmp_path).n == 4, "a record that is being written is not there yet"
    ledger.write_bytes(b"nonsense" * 10)
    with pytest.raises(P2pdpError):
        facts_of(tmp_path)
    ledger.write_bytes(b"")
    assert facts_of(tmp_path).events == []
