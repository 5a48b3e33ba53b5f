"""Other ways to put users into processes: several in one, fresh interpreters, all of them without sockets."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from p2pdp.auditor.verify import COMPLETE
from tests.support.launched import ROLES, Launched, complete, judge_folder, ring

SEED = 20260
UNDER_WAY = 50  # frames


def proved(folder: Path) -> None:
    assert judge_folder(folder).verification.verified == COMPLETE
    assert not list(folder.rglob("run.key")), "keys are unlinked when the run closes"


@pytest.mark.parametrize("wish", [{"nodes_per_process": 3}, {"nodes_per_process": 2, "spawn": True}])
def test_processes_of_several_users_are_killed_and_come_back(tmp_path: Path, wish: dict[str, int]) -> None:
    """With the process go all users in it, and whoever has the token; nobody is put out and nothing happens twice."""
    chance = Random(SEED)  # noqa: S311 - nothing is kept secret with it
    with Launched(tmp_path, complete(7, 4000), (6, UNDER_WAY), **wish) as launched:
        process = launched.stands()
        children = launched.children()
        together = [user for user in children if children[user] == children[0] and user != ROLES]
        assert together == list(range(wish["nodes_per_process"]))
        launched.kill(chance.randrange(7))
        launched.wait_for_everybody()
        with suppress(ProcessLookupError):  # it may have been the one that was killed
            os.kill(process, signal.SIGCONT)
        for _ in range(2):
            launched.wait_for_progress()
            launched.kill(chance.choice([launched.holder(), chance.randrange(7)]))
            launched.wait_for_everybody()
        result = launched.completes()
        assert (result["missing"], result["hops"]) == ([], 4000)
        assert launched.count("restarted") >= 1
        assert all(said["users"] >= 1 for said in launched.said if said["event"] == "restarted")
        assert launched.count("excluded") == 0
    proved(launched.folder)


def test_a_packed_run_is_interrupted_and_goes_on_with_processes_as_before(tmp_path: Path) -> None:
    with Launched(tmp_path, ring(6, 400), (2, UNDER_WAY), nodes_per_process=3) as launched:
        process = launched.stands()
        launched.process.send_signal(signal.SIGINT)
        os.kill(process, signal.SIGCONT)
        assert launched.end() == 130
    with Launched(tmp_path, None, (4, UNDER_WAY)) as again:
        process = again.stands()
        assert len(set(again.children().values())) == 3  # two of three users each, and the roles
        os.kill(process, signal.SIGCONT)
        assert again.completes()["hops"] == 2400
    proved(again.folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_all_in_one_process_is_interrupted_or_killed_and_goes_on(tmp_path: Path, number: int) -> None:
    """SIGKILL is for the process of all nodes; the launcher starts it again by itself."""
    text = complete(5, 2000, 'transport = "memory"')
    with Launched(tmp_path, text, (2, UNDER_WAY)) as launched:
        process = launched.stands()
        assert set(launched.children().values()) == {process}
        if number == signal.SIGKILL:
            os.kill(process, signal.SIGKILL)
            result = launched.completes()
            assert launched.count("restarted") == 1
        else:
            launched.process.send_signal(number)
            os.kill(process, signal.SIGCONT)
            assert launched.end() == 130
            with Launched(tmp_path) as again:
                result = again.completes()
    assert (result["transport"], result["hops"], result["missing"], result["faults"]) == ("memory", 2000, [], {})
    proved(launched.folder)
