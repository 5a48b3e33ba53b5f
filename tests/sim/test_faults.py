from __future__ import annotations

import dataclasses

import pytest

from p2pdp.ledger.journal import VIEW
from p2pdp.sim.faults import NO_FAULTS, Crash, DiskFault, Faults, Harm, Network, Partition


def test_by_default_nothing_goes_wrong() -> None:
    assert Faults() == NO_FAULTS
    assert (NO_FAULTS.loss, NO_FAULTS.duplication, NO_FAULTS.crashes, NO_FAULTS.partitions) == (0.0, 0.0, (), ())


def test_a_crash_is_followed_by_a_restart_with_the_disk_as_it_was() -> None:
    crash = Crash(3, at_record=5)
    assert (crash.down_s, crash.torn_bytes, crash.rolled_back_to) == (1.0, None, None)


@pytest.mark.parametrize("value", [Crash(1), Partition(0.0, 1.0, frozenset({1})), Faults()])
def test_faults_are_values(value: Crash | Partition | Faults) -> None:
    assert value == dataclasses.replace(value)
    assert hash(value) == hash(dataclasses.replace(value))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, 2)


FRAMES = 4000


def arrivals(faults: Faults, seed: int = 1, now_s: float = 0.0) -> list[list[float]]:
    network = Network(faults, seed)
    return [network.arrivals(0, 1, 100, now_s) for _ in range(FRAMES)]


def test_without_faults_each_frame_arrives_once_after_the_delay() -> None:
    found = arrivals(Faults(delay_s=0.25, jitter_s=0.0), now_s=3.0)
    assert found == [[3.25]] * FRAMES


def test_frames_on_one_way_arrive_in_order_unless_reordering_is_asked_for() -> None:
    times = [at_s for (at_s,) in arrivals(Faults(delay_s=0.1, jitter_s=0.05))]
    assert times == sorted(times)


def test_jitter_reorders() -> None:
    times = [at_s for (at_s,) in arrivals(Faults(delay_s=0.1, jitter_s=0.05, reordering=True))]
    assert min(times) >= 0.1
    assert times != sorted(times)
    assert 0.03 < sum(times) / FRAMES - 0.1 < 0.07


def test_the_same_seed_is_the_same_network() -> None:
    faults = Faults(loss=0.2, duplication=0.2, jitter_s=0.05)
    assert arrivals(faults) == arrivals(faults)
    assert arrivals(faults) != arrivals(faults, seed=2)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_frames_are_lost_and_doubled_at_the_given_rates(rate: float) -> None:
    """Six standard deviations on 4,000 frames with a fixed seed."""
    slack = 6 * (rate * (1 - rate) / FRAMES) ** 0.5
    lost = sum(not found for found in arrivals(Faults(loss=rate))) / FRAMES
    doubled = sum(len(found) == 2 for found in arrivals(Faults(duplication=rate))) / FRAMES
    assert abs(lost - rate) < slack
    assert abs(doubled - rate) < slack
    assert arrivals(Faults(loss=1.0)) == [[]] * FRAMES


def test_a_partition_cuts_between_its_sides_and_for_its_time_only() -> None:
    network = Network(Faults(partitions=(Partition(1.0, 2.0, frozenset({0, 1})),)), 1)
    for now_s, cut in ((0.9, False), (1.0, True), (1.9, True), (2.0, False)):
        assert (network.arrivals(0, 2, 1, now_s) == []) is cut
        assert (network.arrivals(2, 1, 1, now_s) == []) is cut
        assert network.arrivals(0, 1, 1, now_s)
        assert network.arrivals(2, 3, 1, now_s)


def test_it_counts_what_was_sent() -> None:
    network = Network(Faults(loss=1.0), 1)
    network.arrivals(0, 1, 100, 0.0)
    network.arrivals(0, 1, 28, 0.0)
    assert (network.frames, network.bytes) == (2, 128)


@pytest.mark.parametrize("harm", list(Harm))
def test_each_harm_changes_a_file_where_it_says(harm: Harm) -> None:
    before = bytes(range(1, 101))
    data = bytearray(before)
    DiskFault(VIEW, harm, place=0.25, size=10).strike(data)
    changed = [at for at in range(100) if data[at] != before[at]]
    if harm in (Harm.ZEROS, Harm.GARBAGE):
        assert (changed, len(data)) == ([], 110)
        assert any(data[100:]) == (harm is Harm.GARBAGE)
    else:
        assert len(data) == 100
        assert changed == ([25] if harm is Harm.FLIPPED else list(range(25, 35)))
        assert (bytes(data[25:35]) == before[65:75]) == (harm is Harm.MISDIRECTED)


def test_an_empty_file_suffers_nothing() -> None:
    for harm in Harm:
        data = bytearray()
        DiskFault(VIEW, harm).strike(data)
        assert data == b""
