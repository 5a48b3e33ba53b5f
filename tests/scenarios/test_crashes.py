"""Exactly once: whoever crashes, at whatever record, and comes back, the result is as if nobody had."""

from __future__ import annotations

import pytest

from p2pdp.core.ids import Peer
from p2pdp.sim.faults import Crash
from tests.support.crash_specs import COMPLETE, LOSSY, PATH, REGULAR, RING, everybody
from tests.support.fault_worlds import HISTOGRAM, completes, crashed_twice, record_counts, ring, walk, world_of

MORE = (REGULAR, ring(4, 2, tokens=2), walk(4, 6, tokens=3), ring(3, 2, HISTOGRAM), walk(4, 6, task=HISTOGRAM))


@pytest.mark.parametrize(("text", "peer"), everybody(RING, COMPLETE, PATH))
def test_a_crash_at_every_record_changes_nothing(text: str, peer: Peer) -> None:
    """What the disk keeps of the record takes turns, one process later than for the one before."""
    for record in range(1, record_counts(text)[peer] + 1):
        torn_bytes = (None, 0, 40)[(record + peer) % 3]
        world = world_of(text, 1, Crash(peer, at_record=record, torn_bytes=torn_bytes))
        judged = completes(world)
        assert judged.verification.verified == "complete"
        assert world.out == []
        assert sum(len(path) for path in judged.path.values()) == world.run.plan.steps


@pytest.mark.parametrize(("text", "peer"), everybody(*MORE))
def test_so_with_several_tokens_histograms_and_other_graphs(text: str, peer: Peer) -> None:
    for record in range(1, record_counts(text)[peer] + 1, 3):
        assert completes(world_of(text, 1, Crash(peer, at_record=record))).verification.verified == "complete"


@pytest.mark.parametrize("part", range(8))
def test_two_crashes_on_a_bad_network(part: int) -> None:
    for world, _ in crashed_twice((RING, COMPLETE, PATH, *MORE), range(50 * part, 50 * part + 50), **LOSSY):
        completes(world)


def test_the_same_process_may_crash_again_and_again() -> None:
    for peer in record_counts(RING):
        crashes = [Crash(peer, at_record=record) for record in range(1, 60, 2)]
        completes(world_of(RING, 1, *crashes))


@pytest.mark.parametrize("down_s", [0.5, 30.0, 300.0])
def test_everybody_down_and_back(down_s: float) -> None:
    """Nobody is put out: who was away himself does not take it for the silence of others."""
    for text in (RING, COMPLETE, PATH):
        for at_s in (0.003, 0.0075, 0.01, 0.02, 0.4, 1.1):
            crashes = [Crash(peer, at_s=at_s, down_s=down_s) for peer in record_counts(text)]
            world = world_of(text, 1, *crashes)
            completes(world)
            assert world.out == []


def test_a_restart_after_the_end_is_no_rollback() -> None:
    """Heads are handed in outside the ledger; a restart counts them before it compares numbers."""
    for peer in record_counts(COMPLETE):
        for at_s in (0.025, 0.03, 0.04, 0.3):
            completes(world_of(COMPLETE, 1, Crash(peer, at_s=at_s), Crash(2, at_record=9, down_s=5.0)))
