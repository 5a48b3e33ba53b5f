"""Nodes that never come back, or never came."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from p2pdp.auditor.verify import COMPLETE, INCOMPLETE
from p2pdp.runs.audit import audit, verify
from tests.support.launched import ROLES, Launched, complete, judge_folder, ring, sparse, wait_for

QUICK = "patience_s = 6", "patience_s = 3"
UNDER_WAY = 50  # frames


@pytest.mark.parametrize("text", [complete(6, 1500), sparse(8, 1500)], ids=["complete", "sparse"])
def test_the_others_go_round_a_node_that_never_returns(tmp_path: Path, text: str) -> None:
    with Launched(tmp_path, text.replace(*QUICK), (3, UNDER_WAY), mortal=[3]) as run:
        os.kill(run.stands(), signal.SIGKILL)
        result = run.completes()
        assert result["missing"] == [3]
        assert {"event": "excluded", "user": 3} in run.said
    judge_folder(run.folder)
    found = verify(run.folder)
    assert (found.verified, found.problems) == (INCOMPLETE, [])
    audited = audit(run.folder, None, None, allow_missing=False)
    assert audited.claims
    assert audited.verified == INCOMPLETE
    with Launched(tmp_path) as again:
        assert again.completes()["missing"] == [3]


def test_the_holder_of_the_token_never_returns_and_others_crash_meanwhile(tmp_path: Path) -> None:
    gone = 4
    with Launched(tmp_path, complete(6, 1500).replace(*QUICK), (gone, UNDER_WAY), mortal=list(range(6))) as run:
        os.kill(run.stands(), signal.SIGKILL)  # with a token that it has not read, or that comes to it next
        run.kill(ROLES)
        assert run.completes()["missing"] == [gone]
    judge_folder(run.folder)


def test_a_node_that_is_out_comes_back_learns_it_and_leaves(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(5, 1500).replace(*QUICK), (2, UNDER_WAY)) as run:
        child = run.stands()
        wait_for(lambda: not run.running or run.excluded() == [2], "the silent node is out")
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGCONT)
        assert run.completes()["missing"] == [2]
        assert run.count("restarted") == 0
    judge_folder(run.folder)


def test_a_ring_cannot_go_round_says_so_and_goes_on_when_the_node_is_back(tmp_path: Path) -> None:
    with Launched(tmp_path, ring(4, 300).replace(*QUICK), (2, UNDER_WAY), mortal=[2]) as run:
        os.kill(run.stands(), signal.SIGKILL)
        assert run.end() == 3
        assert run.error == "user 2 is gone, and a ring cannot go round"
    with Launched(tmp_path, absent=[2]) as run:  # it is still gone
        assert run.end() == 3
        assert "user 2 is" in run.error
    with Launched(tmp_path) as run:
        assert run.completes()["missing"] == []
    assert judge_folder(run.folder).verification.verified == COMPLETE


def test_enough_nodes_begin_without_those_that_never_came(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(6, 400, "min_nodes = 4"), absent=[1, 4], enrol_s=0.5) as run:
        wait_for(lambda: not run.running or (run.folder / "roster.json").exists(), "the roster")
        if run.running:
            run.kill(0, 2)
        result = run.completes()
        assert (result["nodes"], result["missing"]) == (4, [])
        assert {"event": "roster", "n": 4} in run.said
    assert sorted(path.name for path in (run.folder / "nodes").iterdir()) == ["0000", "0001", "0002", "0003"]
    assert judge_folder(run.folder).verification.verified == COMPLETE
    with Launched(tmp_path) as again:  # folders are named after users now; nothing is started
        assert again.completes() == result


def test_a_node_that_comes_too_late_stays_away(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 1000, "min_nodes = 3"), (2, UNDER_WAY), absent=[0], enrol_s=0.5) as run:
        user = run.stands()
        run.process.send_signal(signal.SIGTERM)
        os.kill(user, signal.SIGCONT)
        assert run.end() == 130
    with Launched(tmp_path, None, (1, UNDER_WAY)) as run:
        user = run.stands()
        wait_for(lambda: len(run.members()) == 5, "only the launcher, the roles and three users are left")
        os.kill(user, signal.SIGCONT)
        assert run.completes()["nodes"] == 3
        assert {"event": "stayed_away", "user": 0} in run.said
    assert judge_folder(run.folder).verification.verified == COMPLETE
    assert [path.name for path in run.folder.glob("stayed-away-*")] == ["stayed-away-0000"]


def test_too_few_nodes_are_not_waited_for_without_end(tmp_path: Path) -> None:
    """They are: whoever starts the others later goes on with the run. Until then it can be interrupted."""
    with Launched(tmp_path, complete(3, 20), absent=[2], enrol_s=0.5) as run:
        wait_for(lambda: not run.running or len(run.children()) == 3, "those who came")
        run.process.send_signal(signal.SIGTERM)
        assert run.end() == 130
    with Launched(tmp_path) as run:
        assert run.completes()["nodes"] == 3
