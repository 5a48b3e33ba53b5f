"""`kill -9` of any process at any moment: the run completes, with the effect of one without crashes."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from p2pdp.auditor.verify import COMPLETE
from tests.support.launched import ROLES, Launched, complete, judge_folder, modes, ring, sparse, wait_for

STOPS = (50, 100, 150, 200)  # frames: there one process stands still, and so there is a run to be disturbed


def goes_on(process: int) -> None:
    """Unless it was killed."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGCONT)


def judged(run: Launched) -> None:
    result = run.completes()
    assert result["missing"] == []
    assert judge_folder(run.folder).verification.verified == COMPLETE
    assert set(modes(run.folder).values()) == {0o600}
    assert not list(run.folder.rglob("run.key")), "keys are unlinked when the run closes"


@pytest.mark.parametrize("seed", [1, 2])
def test_random_nodes_are_killed(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - nothing is kept secret with it
    with Launched(tmp_path, sparse(10, 3000), (5, *STOPS)) as run:
        for _ in STOPS:
            process = run.stands()
            run.kill(chance.choice([ROLES, *range(10)]))
            run.wait_for_everybody()
            goes_on(process)
        for _ in range(11):
            run.wait_for_progress(30_000)
            run.kill(chance.choice([ROLES, *range(10)]))
        judged(run)
        assert run.count("restarted") >= len(STOPS)


@pytest.mark.parametrize("text", [ring(6, 500), complete(6, 3000)], ids=["ring", "complete"])
def test_the_holder_of_the_token_is_killed(tmp_path: Path, text: str) -> None:
    """While a process stands still, it holds the token, or soon has it before it, unread."""
    with Launched(tmp_path, text, (2, *STOPS)) as run:
        for _ in STOPS:
            process = run.stands()
            run.kill(run.holder())
            run.wait_for_everybody()
            goes_on(process)
        for _ in range(8):
            run.wait_for_progress(15_000)
            if run.running:
                run.kill(run.holder())
        judged(run)
        assert run.count("restarted") >= len(STOPS)


def test_bootstrap_and_curator_are_killed_from_their_first_moment_to_the_last(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(5, 3000), (1, *STOPS[:1])) as run:  # it does not end before the eighth time
        for _ in range(8):
            wait_for(lambda: not run.running or ROLES in run.children(), "bootstrap and curator are up")
            run.kill(ROLES)
        goes_on(run.stands())
        run.wait_for_progress()
        while run.running:
            run.kill(ROLES)
            run.wait_for_progress(60_000)
        judged(run)
        assert run.count("restarted") >= 8


def test_nodes_are_killed_before_they_have_enrolled(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(5, 100)) as run:
        for user in (0, 1, 2, 3, 4, 0, 1, 2):
            wait_for(lambda user=user: not run.running or user in run.children(), "the node is up")  # type: ignore[misc]
            run.kill(user)
        judged(run)


def test_all_are_killed_at_once(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(6, 3000), (4, *STOPS[:3])) as run:
        for _ in STOPS[:3]:
            run.stands()
            run.wait_for_everybody()
            run.kill(*run.children())
        judged(run)
        assert run.count("restarted") == 3 * 7
