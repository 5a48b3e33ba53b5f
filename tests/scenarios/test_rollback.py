"""A disk that comes back in an earlier state: whoever has one stops, and nothing is drawn or taken twice."""

from __future__ import annotations

from collections import Counter

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.sim.faults import Crash, Partition
from tests.support.crash_specs import COMPLETE, RING, everybody
from tests.support.fault_worlds import WatchedWorld, ends, record_counts, world_of

ROLLED_BACK = "was rolled back"


def outcome(world: WatchedWorld, peer: int) -> str:
    """What became of the run; `WatchedWorld` sees to it that nothing is drawn twice."""
    if ends(world, ROLLED_BACK):
        return "stopped"
    host = world.processes[peer].host
    if host is not None and host.stopped:
        assert world.out == [peer], "who has stopped is gone round"
        return "gone round"
    assert world.out == []
    return "harmless" if peer in world.forgotten else "nothing to forget"


@pytest.mark.parametrize(("text", "peer"), everybody(RING, COMPLETE))
def test_a_rolled_back_disk_at_any_point(text: str, peer: int) -> None:
    seen: Counter[str] = Counter()
    for record in range(3, record_counts(text)[peer] + 1, 2):
        for back_to in range(1, record - 1, 3):
            seen[outcome(world_of(text, 1, Crash(peer, at_record=record, rolled_back_to=back_to)), peer)] += 1
    few = seen.total() <= 10  # a user who was visited once forgets hardly anything that somebody had heard of
    assert few or seen["stopped"] + seen["gone round"] > seen["harmless"] / 4
    assert (seen["gone round"] == 0) or peer >= 0


def test_a_role_that_forgot_its_whole_part_of_the_run_asks_the_others_too() -> None:
    """Nothing but the enrolment is left on the disk of bootstrap, which had acknowledged what two users sent."""
    late = Partition(0.005, 20.0, frozenset({2}))
    crash = Crash(BOOTSTRAP, at_s=10.0, rolled_back_to=1 + 3 + 1)
    world = world_of(RING, 1, crash, partitions=(late,))
    assert ends(world, ROLLED_BACK)
    assert world.now_s < 20.0
    assert world.out == []


def test_the_reason_names_whose_disk_it_was() -> None:
    for peer, name, at in ((BOOTSTRAP, "bootstrap", 20), (CURATOR, "curator", 18), (1, "1", 13)):
        reason = ends(world_of(RING, 1, Crash(peer, at_record=at, rolled_back_to=4)), ROLLED_BACK)
        assert reason == f"the run stopped: the disk of {name} was rolled back"


def test_a_lost_comparison_is_asked_for_again() -> None:
    """On a network that loses a third of all frames, one unanswered question must not pass for agreement."""
    seen: Counter[str] = Counter()
    for seed in range(100, 160):
        crash = Crash(1, at_record=12, rolled_back_to=4)
        seen[outcome(world_of(RING, seed, crash, loss=0.33), 1)] += 1
    assert seen.total() == seen["stopped"] + seen["harmless"] == 60
    assert seen["harmless"] <= 6, "only where all that was lost is an entry of which nothing had left"
