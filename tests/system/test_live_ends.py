"""However a run ends, no process is left, and its folder can be resumed."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from p2pdp.auditor.verify import COMPLETE
from tests.support.launched import ROLES, Launched, complete, judge_folder, modes, ring, wait_for

CRASH_TEXT = "31.4159"
UNDER_WAY = 50  # frames
SOON = {"p2pdp.cluster.launcher:STOP_S": 1.0}


def resumed(place: Path) -> None:
    with Launched(place) as again:
        assert again.completes()["missing"] == []
    assert judge_folder(place / "run").verification.verified == COMPLETE
    assert not list((place / "run").rglob("run.key"))


@pytest.mark.parametrize(
    ("number", "to_all"),
    [(signal.SIGTERM, False), (signal.SIGINT, True), (signal.SIGTERM, True)],
    ids=["SIGTERM", "Ctrl-C", "SIGTERM to all"],
)
def test_an_interrupted_run_is_resumed(tmp_path: Path, number: int, *, to_all: bool) -> None:
    with Launched(tmp_path, complete(6, 1200), (2, UNDER_WAY)) as run:
        user = run.stands()
        if to_all:
            os.killpg(run.process.pid, number)
        else:
            run.process.send_signal(number)
        with suppress(ProcessLookupError):
            os.kill(user, signal.SIGCONT)
        assert (run.end(), run.other, run.out) == (130, "", "")
    assert modes(run.folder)["nodes/0000/run.key"] == 0o600
    resumed(tmp_path)


def test_an_interruption_at_any_moment_is_resumed(tmp_path: Path) -> None:
    """From before there is a roster until after the result; each start goes on with what the last one left."""
    with Launched(tmp_path, ring(4, 300), (2, UNDER_WAY), constants=SOON) as run:  # it never ends by itself
        wait_for(lambda: not run.running or run.members()[1:], "a first process is there")
        run.process.send_signal(signal.SIGTERM)
        assert run.end() == 130
    for grown_bytes in (1, 5_000, 50_000):
        with Launched(tmp_path) as run:
            run.wait_for_progress(grown_bytes)
            run.process.send_signal(signal.SIGTERM)
            assert run.end() in (0, 130)
            assert run.other == ""
    resumed(tmp_path)


def test_processes_end_when_their_launcher_is_killed(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(6, 1200), (2, UNDER_WAY)) as run:
        user = run.stands()
        run.process.kill()
        run.process.wait()
        with suppress(ProcessLookupError):
            os.kill(user, signal.SIGCONT)
        wait_for(lambda: run.members() == [], "orphans end by themselves")
    resumed(tmp_path)


def test_a_folder_is_not_run_twice_at_once(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 400), (2, UNDER_WAY), constants=SOON) as run:
        run.stands()
        os.kill(run.children()[ROLES], signal.SIGSTOP)
        with Launched(tmp_path, constants={"p2pdp.cluster.folder:LOCK_S": 0.1}) as second:
            assert second.end() == 6
            assert "another process runs this folder" in second.error
        run.process.send_signal(signal.SIGTERM)
        assert run.end() == 130, "a stopped process is ended all the same"


def test_a_finished_run_gives_its_result_again(tmp_path: Path) -> None:
    with Launched(tmp_path, ring(3, 2)) as run:
        first = run.completes()
        once = [said["event"] for said in run.said if "count" not in said]
        assert sorted(once[1:3]) == ["enrolled", "roster"]
        assert [once[0], *once[3:]] == ["folder", "published", "collecting"]
    for missing in ((), ("result.json",)):  # a launcher that was killed before its last act
        for name in missing:
            (run.folder / name).unlink()
        with Launched(tmp_path) as again:
            assert again.completes() == first
            said = [said["event"] for said in again.said]
            assert said == (["folder", "collecting"] if missing else []), "nothing was started"
    with Launched(tmp_path, ring(3, 2)) as over:
        assert over.end() == 2
        assert "not empty" in over.error


def test_a_child_that_is_asked_to_end_is_started_again(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 1000), (2, UNDER_WAY)) as run:
        user, children = run.stands(), run.children()
        for who in (ROLES, 1):
            os.kill(children[who], signal.SIGTERM)
        os.kill(user, signal.SIGCONT)
        assert run.completes()["missing"] == []
        assert run.count("restarted") == 2


def test_a_full_disk_ends_the_run_with_one_reason_and_it_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 3000), file_bytes_max=60_000) as run:
        assert run.end() == 6
        assert "ledger: File too large" in run.error
        assert run.other == ""
    resumed(tmp_path)


def test_a_defect_ends_the_run_after_some_attempts_and_is_shown_once_without_values(tmp_path: Path) -> None:
    with Launched(tmp_path, ring(3, 100), crash=1) as run:
        assert run.end() == 3
        assert "node 1 crashed again and again" in run.error
        assert run.count("restarted") == 3
        assert run.other.count("node 1 crashed") == run.other.count("ZeroDivisionError\n") == 1
        assert "receives" in run.other
        assert CRASH_TEXT not in run.other + json.dumps(run.said)
    resumed(tmp_path)


def test_nothing_of_the_data_the_keys_or_the_route_is_said(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 300)) as run:
        run.wait_for_everybody()
        run.kill(1)
        run.completes()
        counted = {"started", "enrolling", "seated"}
        assert {said["event"] for said in run.said} <= counted | {
            *("folder", "roster", "enrolled", "published", "restarted", "collecting"),
        }
        for said in run.said:
            more = {"count", "of"} if said["event"] in counted else {"n", "user", "users", "folder"}
            assert set(said) <= {"event", *more}, "nobody who has a seat or a token is named"
        keys = [path.read_bytes() for path in run.folder.rglob("*.key")]
        assert len(keys) == 6
        assert not any(key.hex() in run.out + json.dumps(run.said) for key in keys)
