"""Everything follows from the seed: the same seed gives the same bytes, another one others."""

from __future__ import annotations

from p2pdp.sim.faults import Crash, Partition
from tests.support.fault_worlds import HISTOGRAM, completes, ring, walk, world_of


def disks(text: str, seed: int) -> dict[int, tuple[bytes, bytes]]:
    cut = Partition(0.01, 3.0, frozenset({0}))
    network = {"loss": 0.1, "duplication": 0.1, "jitter_s": 0.01, "partitions": (cut,)}
    world = world_of(text, seed, Crash(1, at_record=12), Crash(0, at_s=0.5, down_s=4.0), **network)
    completes(world)
    return {peer: (bytes(process.disk.view), bytes(process.disk.private)) for peer, process in world.processes.items()}


def test_the_same_seed_gives_the_same_disks() -> None:
    for text in (ring(3, 2), walk(4, 8), walk(5, 8, "path"), walk(4, 6, task=HISTOGRAM)):
        assert disks(text, 5) == disks(text, 5)


def test_another_seed_gives_other_disks() -> None:
    one, other = disks(walk(4, 8), 5), disks(walk(4, 8), 6)
    assert all(one[peer][0] != other[peer][0] for peer in one)


def test_faults_change_when_but_not_what_is_computed_on_a_ring() -> None:
    """On a ring the route is fixed; whoever is faulty, all contributions are in."""
    judged = completes(world_of(ring(3, 2), 5, Crash(1, at_record=12)))
    assert judged.path == completes(world_of(ring(3, 2), 5)).path == {0: [0, 1, 2, 0, 1, 2]}
