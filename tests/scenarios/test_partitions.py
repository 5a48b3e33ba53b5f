"""The network is cut in two for a while: too short to matter, or long enough for somebody to be put out."""

from __future__ import annotations

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.sim.faults import Partition
from tests.support.fault_worlds import chance, completes, record_counts, ring, walk, world_of

WORLDS = (ring(3, 2), walk(4, 8), walk(5, 8, "path"), walk(4, 8, tokens=2))


@pytest.mark.parametrize("text", WORLDS)
def test_a_short_partition_costs_time_only(text: str) -> None:
    for peer in record_counts(text):
        for start_s in (0.0, 0.006, 0.009, 0.012, 0.02):
            world = world_of(text, 1, partitions=(Partition(start_s, start_s + 6.0, frozenset({peer})),))
            completes(world)
            assert world.out == []


@pytest.mark.parametrize("text", WORLDS[1:])
def test_the_token_holder_alone_is_put_out_and_closes_when_the_partition_heals(text: str) -> None:
    cut_off = 0
    for user in range(world_of(text).run.n):
        for start_s in (0.006, 0.008, 0.01, 0.012, 0.015, 0.02):
            world = world_of(text, 1, partitions=(Partition(start_s, start_s + 45.0, frozenset({user})),))
            judged = completes(world)
            assert set(world.out) <= {user}
            assert user not in world.out or world.processes[user].host is not None
            cut_off += len(judged.verification.excluded)
    assert cut_off


def test_two_users_with_the_token_among_themselves_do_not_double_it() -> None:
    """They go on passing it to each other; nobody outside takes it once they are out."""
    for seed in range(12):
        for start_s in (0.007, 0.009, 0.012):
            cut = Partition(start_s, start_s + 60.0, frozenset({1, 2}))
            completes(world_of(walk(4, 12), seed, partitions=(cut,)))


def test_bootstrap_or_curator_cut_off_for_long() -> None:
    for text in WORLDS:
        for side in ({BOOTSTRAP}, {CURATOR}, {BOOTSTRAP, CURATOR}):
            for start_s in (0.0, 0.007, 0.011, 0.02):
                completes(world_of(text, 1, partitions=(Partition(start_s, start_s + 50.0, frozenset(side)),)))


@pytest.mark.parametrize("part", range(5))
def test_any_partitions(part: int) -> None:
    for seed in range(30 * part, 30 * part + 30):
        dice = chance(seed)
        text = dice.choice(WORLDS)
        peers = sorted(record_counts(text))
        cuts = []
        for _ in range(dice.randint(1, 3)):
            start_s = dice.choice((0.0, dice.uniform(0.0, 0.05), dice.uniform(0.0, 1.0)))
            end_s = start_s + dice.choice((0.01, 1.0, 5.0, 15.0, 25.0, 40.0, 70.0))
            cuts.append(Partition(start_s, end_s, frozenset(peer for peer in peers if dice.random() < 0.4)))
        completes(world_of(text, seed, partitions=tuple(cuts), loss=dice.choice((0.0, 0.1)), jitter_s=0.005))
