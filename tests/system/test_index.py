"""The index of a real run: kept while the run lives, made again from folders, and never in its way."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from p2pdp.index.store import Index
from tests.support.across import SHARED, Across, Started
from tests.support.databases import WHY_NOT, postgres, programs
from tests.support.index_rows import dump
from tests.support.launched import complete, wait_for
from tests.support.missing import missing
from tests.support.standing import state_of


def listed(run: Across, *arguments: str) -> dict[str, Any]:
    return run.start("index", "index", *arguments, "--json").document()


def test_a_run_is_in_its_index_while_it_lives_and_deleting_that_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "boot" / "index.sqlite"
    with Across(tmp_path, complete(3, 40), 3) as run:
        bootstrap = run.bootstrap("--index", "sqlite")
        nodes = [run.node(0, *SHARED), run.node(1, *SHARED)]
        index = Index(f"sqlite:///{file}")
        wait_for(lambda: len(dump_or_nothing(index).get("p2pdp_participants", ())) == 2, "two are in the index")
        unlink_between_writes(bootstrap, file)
        nodes.append(run.node(2, *SHARED))
        result = bootstrap.document()
        for node in nodes:
            node.document()
        whole = dump(index)
        (row,) = whole["p2pdp_runs"]
        assert (row[0], row[6], len(whole["p2pdp_participants"])) == (result["run_id"], "done", 3)
        assert [json.loads(str(document)) for _, document in whole["p2pdp_results"]] == [
            json.loads((tmp_path / "boot" / "result.json").read_text())
        ]
        assert len(whole["p2pdp_claims"]) == len(json.loads((tmp_path / "boot" / "audit.json").read_text())["claims"])
        file.unlink()
        assert listed(run, "boot")["written"] == [result["run_id"]]
        assert dump(index) == whole


def unlink_between_writes(writer: Started, file: Path) -> None:
    """SQLite takes a journal that is left for that of the file which is made next."""
    while file.exists():
        writer.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(writer.process.pid)[:1] == ["T"], "nobody writes")
        if not file.with_name(f"{file.name}-journal").exists():
            file.unlink()
        writer.go_on()


def dump_or_nothing(index: Index) -> dict[str, list[tuple[object, ...]]]:
    """Before the tables are there, nothing is."""
    try:
        return dump(index)
    except Exception:  # noqa: BLE001 - whatever the driver says
        return {}


def test_a_database_that_goes_away_is_a_line_and_the_run_goes_on(tmp_path: Path) -> None:
    found = programs()
    if found is None:
        missing(WHY_NOT)
    with postgres(found) as server, Across(tmp_path, complete(3, 40), 3) as run:
        bootstrap = run.bootstrap("--index", server.url)
        nodes = [run.node(0)]
        index = Index(server.url)
        wait_for(lambda: dump_or_nothing(index).get("p2pdp_participants"), "one is in the index")
        server.stop()
        nodes.append(run.node(1))
        bootstrap.wait_until_said("index cannot be written")
        nodes.append(run.node(2))
        result = bootstrap.document()
        for node in nodes:
            node.document()
        assert bootstrap.said.count("index cannot be written") == 1
        assert "a-password" not in bootstrap.said
        server.start()
        document = listed(run, "boot", "--index", server.url, "--rebuild")
        assert [(each["run_id"], each["state"]) for each in document["runs"]] == [(result["run_id"], "done")]
        once = dump(index)
        assert listed(run, "boot", "--index", server.url) == document
        assert dump(index) == once
