"""A live run that has not ended when it expires: exit 3 and a sentence, no key is left, and nobody goes on with it."""

from __future__ import annotations

from pathlib import Path

from p2pdp.ledger.records import SKELETON_MAGIC
from tests.support.across import Across
from tests.support.launched import Launched, complete, ring
from tests.support.set_clocks import EXPIRES, set_forward

ENDLESS = 50_000_000
ACCOUNTABLE = 1_000_000  # the most hops of which a node says what they cost: minutes of them


def keys(place: Path) -> list[Path]:
    return list(place.rglob("run.key"))


def test_a_local_run_ends_when_it_expires_and_is_not_resumed(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, ENDLESS, EXPIRES), clock=str(tmp_path)) as run:
        run.wait_for_progress()
        assert run.running
        assert len(keys(run.folder)) == 6
        set_forward(tmp_path)
        assert run.end() == 3
        assert "expired at" in run.error
        assert "cannot be resumed" in run.error
        assert keys(run.folder) == []
    sizes = run.sizes()
    with Launched(tmp_path, clock=str(tmp_path)) as again:
        assert again.end() == 3
        assert "expired at" in again.error
    assert (run.sizes(), keys(run.folder)) == (sizes, [])


def test_a_run_that_ended_in_time_is_told_of_for_ever(tmp_path: Path) -> None:
    with Launched(tmp_path, ring(3, 2, EXPIRES), clock=str(tmp_path)) as run:
        result = run.completes()
    set_forward(tmp_path)
    with Launched(tmp_path, clock=str(tmp_path)) as again:
        assert again.completes() == result


def test_across_machines_everybody_ends_by_its_own_clock(tmp_path: Path) -> None:
    with Across(tmp_path, complete(2, ACCOUNTABLE, EXPIRES), 2) as run:
        run.wishes["clock"] = str(tmp_path)
        bootstrap = run.bootstrap()
        nodes = [run.node(0), run.node(1, "--keep-private")]
        nodes[0].wait_until_said("  expires 2999")
        run.wait_for_growth(0)
        nodes[1].interrupt()
        assert len(keys(tmp_path)) == 4
        set_forward(tmp_path)
        nodes[0].fails(3, "expired at", "cannot be resumed")
        bootstrap.fails(3, "expired at", "cannot be resumed")
        assert keys(tmp_path / "boot") == keys(tmp_path / "n0") == []
        for again in (run.node(0), run.node(1, "--keep-private"), run.start("resume", "resume", "boot", "--json")):
            again.fails(3, "expired at", "cannot be resumed")
        assert keys(tmp_path) == []
        forgotten, kept = ((tmp_path / f"n{number}/node/private.ledger").read_bytes() for number in range(2))
        assert forgotten.startswith(SKELETON_MAGIC)
        assert not kept.startswith(SKELETON_MAGIC)
        run.bootstrap_again("--set", 'run.expires="2020-01-01T00:00:00Z"').fails(2)
