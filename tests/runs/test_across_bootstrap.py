"""What a bootstrap refuses before it starts, and what it makes of its folder; live runs are in tests/system."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from p2pdp.api import simulate
from p2pdp.cluster.folder import BootstrapFolder
from p2pdp.core.errors import UsageError
from p2pdp.core.happenings import Happening
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.report.result import Result
from p2pdp.runs.across_bootstrap import (
    _collect,
    _for_others,
    _Waiting,
    bootstrap,
    planner,
    resume,
)
from p2pdp.services.enrolment import Quorum
from p2pdp.transports.contract import Listening
from tests.support.across_specs import TEXT, spec_of

TABLE = TEXT.replace("seed = 5\n", "").replace('"uniform"', '"csv"\npath = "some/where.csv"')
HERE = Listening("127.0.0.1:0")


@pytest.mark.parametrize(
    ("text", "places", "tokens", "error", "says"),
    [
        (TEXT, HERE, 2, UsageError, "--tokens 2: the run needs 3"),
        (TEXT, Listening("0.0.0.0:7000"), 4, UsageError, "--address HOST:PORT"),
        (TEXT, Listening("[::]:7000"), 4, UsageError, "--address HOST:PORT"),
        (TEXT, Listening("[::]:7000", "0.0.0.0:7000"), 4, UsageError, "--address 0.0.0.0:7000"),
        (TEXT, Listening("7000"), 4, UsageError, "--listen 7000: must read HOST:PORT"),
        (TEXT, Listening("127.0.0.1:0", "here"), 4, UsageError, "--address here: must read"),
        (TABLE.replace("nodes = 4", "nodes = 4\nseed = 1"), HERE, 4, UsageError, "seed"),
        (TABLE, HERE, 4, UsageError, "columns: name them"),
        (TEXT.replace("min_nodes = 3", 'transport = "mqtt"'), HERE, 4, UsageError, "--listen: through a broker"),
        (
            TEXT.replace("min_nodes = 3", 'transport = "mqtt"'),
            Listening(None),
            4,
            UsageError,
            "[transport] host: missing",
        ),
        (TEXT, Listening(None), 4, UsageError, "--listen: missing"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, text: str, places: Listening, tokens: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        bootstrap(spec_of(text), places, tokens, tmp_path / "boot", print)
    assert says in str(caught.value)
    assert not (tmp_path / "boot").exists()


def test_no_data_is_needed_where_the_spec_names_the_columns(tmp_path: Path) -> None:
    named = spec_of(TABLE.replace("[data]", '[data]\ncolumns = ["a", "b", "c"]'))
    assert planner(named)(4).dimensions == 3
    (tmp_path / "own.csv").write_text("1,2\n3,4\n")
    counted = parse_spec(TABLE.replace("some/where.csv", "own.csv"), tmp_path)
    assert planner(counted)(3).dimensions == 2
    assert planner(spec_of())(3).n == 3


def test_others_learn_names_of_files_and_no_places(tmp_path: Path) -> None:
    spec = parse_spec(TABLE, tmp_path)
    offered = spec_to_toml(_for_others(spec))
    assert str(tmp_path) not in offered
    assert 'path = "where.csv"' in offered
    assert spec_digest(parse_spec(offered, None)) == spec_digest(spec)


def finished(tmp_path: Path, text: str = TEXT) -> tuple[Result, BootstrapFolder]:
    """A simulated run, and the folder that its bootstrap would have: no user's ledger is there."""
    spec = parse_spec(text, tmp_path)
    result = simulate(spec, tmp_path / "all")
    folder = BootstrapFolder.open(tmp_path / "boot", spec_to_toml(spec), 4)
    shutil.copytree(tmp_path / "all" / "curator", tmp_path / "boot" / "curator")
    shutil.copy(tmp_path / "all" / "roster.json", tmp_path / "boot")
    return result, folder


@pytest.mark.parametrize("task", ["", '[task]\nkind = "mean"\n'])
def test_without_skeletons_the_estimate_is_there_and_what_nobody_knows_is_null(tmp_path: Path, task: str) -> None:
    whole, folder = finished(tmp_path, TEXT + task)
    told: list[Happening] = []
    result = _collect(parse_spec(TEXT + task, tmp_path), folder, planner(spec_of(TEXT + task)), told.append)
    assert (result.estimate, result.standard_error, result.hops) == (whole.estimate, whole.standard_error, whole.hops)
    assert (result.messages, result.bytes, result.truth, result.error) == (None, None, None, None)
    assert result.baselines == {"local": {"standard_error": None}, "central": {"standard_error": None}}
    assert (result.private_kept, result.seeded, result.run_id) == (False, False, folder.run_id.hex())
    assert (folder.path / "result.json").is_file()
    assert (folder.path / "audit.json").is_file() == (not told)


def test_an_altered_folder_gives_a_result_that_says_so_everywhere(tmp_path: Path) -> None:
    whole, folder = finished(tmp_path)
    place = folder.path / "curator" / "skeletons"
    place.mkdir()
    (place / "0000.skeleton").write_bytes(b"p2pdp skelet 01\n")
    told: list[Happening] = []
    result = _collect(spec_of(), folder, planner(spec_of()), told.append)
    assert result.estimate == whole.estimate
    assert [one.event for one in told] == ["audit_failed"]
    assert result.audit_problem is not None
    assert "skeleton" not in told[0].text, "what is wrong where is for the auditor, not for a log"
    assert json.loads((folder.path / "result.json").read_text())["audit_problem"] == result.audit_problem
    assert json.loads((folder.path / "participants.json").read_text())["verification_failed"] is True
    for page in ("report.html", "participants.html"):
        assert "Verification failed" in (folder.path / page).read_text()
    assert not (folder.path / "audit.json").exists()


def test_what_was_never_started_is_not_resumed(tmp_path: Path) -> None:
    BootstrapFolder.open(tmp_path / "boot", spec_to_toml(spec_of()), 4)
    with pytest.raises(UsageError, match="never started"):
        resume(tmp_path / "boot", print)


def test_bootstrap_says_once_that_too_few_users_came_in_time() -> None:
    said: list[str] = []
    at_s = [100.0]
    waiting = _Waiting(Quorum(5, 3, 60.0), said.append, lambda: at_s[0])
    waiting.count = 2
    waiting.look()
    assert said == []
    at_s[0] = 160.0
    waiting.look()
    waiting.look()
    assert len(said) == 1
    assert "2 of 5 users" in said[0]
    assert "needs 3" in said[0]
    seated = _Waiting(Quorum(5, 3, 0.0), said.append, lambda: at_s[0])
    seated.over = True
    seated.look()
    assert len(said) == 1, "a run that has begun waits for nobody"
