from __future__ import annotations

import dataclasses

import pytest

from p2pdp.sim.faults import NO_FAULTS, Crash, Faults, Partition


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
