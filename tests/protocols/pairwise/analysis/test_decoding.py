from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.protocols.pairwise.analysis.decoding import read_by_curator
from p2pdp.protocols.pairwise.masking import wrapped
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import Ran, expected_of, published_in, simulated
from tests.support.pairwise_world import COUNTS, pairwise

LATE = {"at_s": 0.0075, "down_s": None}


def read(ran: Ran) -> dict[tuple[int, ...], object]:
    found = read_by_curator(ran.run.plan, ran.recorded.views[CURATOR])
    assert all(places == [(0, user) for user in users] for users, _, places in found)
    return {users: total for users, total, _ in found}


@pytest.mark.parametrize("data", ["", COUNTS])
def test_behind_masks_the_curator_reads_the_sum_and_nothing_else(data: str) -> None:
    ran = simulated(pairwise(8, '"ring"', data=data), 2)
    ((users, total),) = read(ran).items()
    assert users == tuple(range(8))
    assert np.all(total == published_in(ran.world))


def test_it_reads_the_sum_of_each_component_that_vanished_users_leave() -> None:
    ran = simulated(pairwise(8, '"ring"', "survivors_min = 5"), 2, Crash(2, **LATE), Crash(5, **LATE))
    found = read(ran)
    assert set(found) == {(0, 1, 6, 7), (3, 4)}
    for users, total in found.items():
        assert total == wrapped(expected_of(ran.world, users))


def test_gaussian_masks_leave_each_value_behind_pair_noise() -> None:
    noise = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 50.0'
    ran = simulated(pairwise(40, '"regular"\ndegree = 6', 'masks = "gaussian"', noise=noise), 2)
    found = read(ran)
    assert set(found) == {(user,) for user in range(40)}
    off = [float(total - expected_of(ran.world, users)) for users, total in found.items()]
    assert np.std(off) * 2.0**ran.run.plan.grid_exponent == pytest.approx(50.0 * math.sqrt(6), rel=0.4)
    assert sum(found.values()) == published_in(ran.world)
