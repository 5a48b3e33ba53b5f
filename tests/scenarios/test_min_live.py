"""A run with fewer users left than it promised is stopped; all learn it, and ledgers are closed as after a result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.endings import TOO_FEW
from p2pdp.core.errors import RunFailed
from p2pdp.files.spec import parse_spec
from p2pdp.runs.simulate import simulate_spec
from p2pdp.sim.faults import Crash, Faults
from tests.support.fault_worlds import walk, world_of

BOTH = Crash(1, at_record=9, down_s=None), Crash(2, at_record=9, down_s=None)


def with_least(count: int) -> str:
    return walk(5, 400).replace("nodes = 5", f"nodes = 5\nmin_live = {count}")


@pytest.mark.parametrize(("least", "stops"), [(3, False), (4, True), (5, True)])
def test_exclusions_stop_the_run_below_the_least_number_only(least: int, *, stops: bool) -> None:
    world = world_of(with_least(least), 1, *BOTH)
    world.run_to_end()
    assert (world.stopped is not None) is stops
    if world.stopped is not None:
        assert world.stopped.reason == TOO_FEW
        assert world.stopped.concerned == [[user] for user in sorted(world.out)[: 6 - least]]


def test_ledgers_of_a_stopped_run_are_complete_but_for_who_is_out() -> None:
    world = world_of(with_least(4), 1, *BOTH)
    world.run_to_end()
    for user in (0, 3, 4):
        host = world.processes[user].host
        assert host is not None
        assert host.done


@pytest.mark.parametrize("role", [-1, -2])
def test_roles_may_crash_while_the_run_is_stopped(role: int) -> None:
    for record in range(40, 130, 9):
        world = world_of(with_least(4), 1, *BOTH, Crash(role, at_record=record, down_s=1.0))
        world.run_to_end()
        assert world.stopped is not None


def test_the_result_says_why_and_the_command_fails(tmp_path: Path) -> None:
    spec = parse_spec(with_least(4), None)
    with pytest.raises(RunFailed, match="fewer users are left"):
        simulate_spec(spec, tmp_path / "run", None, fast=False, faults=Faults(crashes=BOTH), progress=None)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["stopped"]["reason"] == TOO_FEW
    assert result["estimate"] is None
    assert p2pdp.verify(tmp_path / "run").verified == "incomplete"
    assert set(result["missing"]) >= {user for (user,) in result["stopped"]["concerned"]}
