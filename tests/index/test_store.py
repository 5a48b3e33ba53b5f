from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect

from p2pdp.core.errors import UsageError
from p2pdp.index import schema
from p2pdp.index.store import Index, IndexBroken
from tests.support.databases import WHY_NOT, Postgres, postgres, programs
from tests.support.index_rows import FACTS, dump
from tests.support.missing import missing


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    found = programs()
    if found is None:
        missing(WHY_NOT)
    with postgres(found) as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    if request.param == "sqlite":
        return Index(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    started: Postgres = request.getfixturevalue("server")
    made = Index(started.url)
    made.rebuild()
    return made


def test_a_run_is_replaced_as_a_whole_and_the_same_facts_give_the_same_rows(index: Index) -> None:
    index.write(FACTS)
    once = dump(index)
    assert {name.removeprefix("p2pdp_"): len(rows) for name, rows in once.items()} == {
        "schema": 1, "runs": 1, "participants": 2, "events": 2, "results": 1, "claims": 1,
    }  # fmt: skip
    index.write(FACTS)
    assert dump(index) == once
    index.write(replace(FACTS, participants=[], events=[], result=None, claims=[], state="running"))
    assert [len(rows) for rows in dump(index).values()] == [1, 1, 0, 0, 0, 0]
    index.rebuild()
    index.write(FACTS)
    assert dump(index) == once


def test_runs_are_listed_the_newest_first_and_infinity_is_a_word(index: Index) -> None:
    started = {"cc": "2031-01-01T00:00:00.000+00:00", "dd": None, "ee": "2029-01-01T00:00:00.000+00:00"}
    index.write(FACTS)
    for run_id, at in started.items():
        index.write(replace(FACTS, run_id=run_id, started=at, claims=[], headline=None))
    listed = index.runs(10, 0)
    assert [run["run_id"] for run in listed["runs"]] == ["cc", FACTS.run_id, "ee", "dd"]
    assert [run["headline"] for run in listed["runs"]] == [None, FACTS.headline, None, None]
    assert listed["runs"][1]["worst"] == FACTS.worst
    assert [run["epsilon_max"] for run in listed["runs"]] == [None, "inf", None, None]
    assert index.runs(1, 1)["runs"] == [listed["runs"][1]]
    assert (index.runs(5, 9), listed["total"]) == ({"runs": [], "total": 4}, 4)


def test_reading_makes_nothing_and_finds_no_runs_where_none_were_written(index: Index, tmp_path: Path) -> None:
    assert index.runs(9, 0) == {"runs": [], "total": 0}
    assert list(tmp_path.iterdir()) == []
    with index._engine.begin() as connection:
        schema.metadata.drop_all(connection)
    assert index.runs(9, 0) == {"runs": [], "total": 0}
    with index._engine.begin() as connection:
        assert inspect(connection).get_table_names() == []
    index.write(FACTS)
    assert index.runs(9, 0)["total"] == 1


def test_a_file_that_is_no_database_is_told_and_not_taken_for_empty(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, as everybody sees at once" * 50)
    with pytest.raises(IndexBroken):
        Index(tmp_path / "text").runs(9, 0)


def test_many_read_while_one_writes(index: Index) -> None:
    index.write(FACTS)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(index.runs, 9, 0) for _ in range(20)]
        for _ in range(10):
            index.write(FACTS)
        assert [reader.result()["total"] for reader in readers] == [1] * 20


def test_texts_are_values_and_never_statements(index: Index) -> None:
    wicked = "'; DROP TABLE p2pdp_runs; --"
    index.write(replace(FACTS, folder=wicked, protocol=wicked))
    assert index.runs(1, 0)["runs"][0]["folder"] == wicked


def test_tables_of_another_version_are_refused_until_they_are_made_anew(index: Index) -> None:
    index.write(FACTS)
    with index._engine.begin() as connection:
        connection.execute(schema.schema.update().values(version=99))
    for act in (lambda: index.write(FACTS), lambda: index.runs(1, 0)):
        with pytest.raises(IndexBroken, match=r"version 99 .* --rebuild"):
            act()
    index.rebuild()
    index.write(FACTS)
    assert index.runs(1, 0)["total"] == 1


def test_a_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    index = Index(f"sqlite:///{file}")
    index.write(FACTS)
    file.unlink()
    index.write(FACTS)
    assert index.runs(1, 0)["total"] == 1
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM p2pdp_events").fetchone() == (2,)
    connection.close()


def test_a_file_that_is_no_database_or_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, as everybody sees at once" * 50)
    for place in (tmp_path / "text", tmp_path / "absent" / "runs.sqlite", tmp_path):
        with pytest.raises(IndexBroken) as caught:
            Index(f"sqlite:///{place}").write(FACTS)
        assert "\n" not in str(caught.value)
        assert "SQL" not in str(caught.value)


def test_a_server_that_went_away_is_found_again_and_a_password_is_never_told(server: Postgres) -> None:
    index = Index(server.url)
    index.rebuild()
    index.write(FACTS)
    server.stop()
    with pytest.raises(IndexBroken) as caught:
        index.write(FACTS)
    assert "a-password" not in str(caught.value)
    server.start()
    index.write(FACTS)
    with pytest.raises(IndexBroken) as caught:
        Index(server.url.replace("a-password", "another-password")).write(FACTS)
    assert "another-password" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "mysql://a:geheim@b/c", "sqlite://", "sqlite:///a?geheim", "sqlite:///a?geheim=1",
     "postgres://a:geheim@b/c", "oracle://x"],
)  # fmt: skip
def test_what_is_no_address_of_a_database_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="--index") as caught:
        Index(url)
    assert "geheim" not in str(caught.value)
