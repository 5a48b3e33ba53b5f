from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.attacks.decoding import Reading, readings_of
from p2pdp.auditor.audit import audit_run
from p2pdp.protocols.walk.analysis.decoding import visits_of
from p2pdp.replay.evidence import Recorded
from tests.support.runs import DELTA, HISTOGRAM, Run, quiet, ring, walk

OPEN = "closing = false\n"


def readings(run: Run, observer: int) -> list[Reading]:
    return readings_of(run.plan, observer, run.contents()[observer])


def added(run: Run, user: int) -> dict[tuple[int, int], int]:
    """What each visit of a user really added, noise included."""
    return {(one.item, one.step): one.after - one.before for one in visits_of(user, run.contents()[user])}


@pytest.mark.parametrize("laps", range(1, 5))
@pytest.mark.parametrize("n", range(2, 8))
def test_without_a_closing_draw_the_observers_with_infinite_leaks_read_the_sums(n: int, laps: int) -> None:
    """guide/accounting.md, section 2: v then reads the sum of the users after it, one value when there is one."""
    run = quiet(ring(n, laps, OPEN))
    mu = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, ()).mu
    assert mu is not None
    for observer in range(n):
        decoded = {user for one in readings(run, observer) for user in one.users if not _noised(run, one)}
        assert decoded == {user for user in range(n) if mu[user, observer] == math.inf}


def _noised(run: Run, reading: Reading) -> bool:
    return any(run.plan.plan.draws_at(step) for _, step in reading.places)


def test_user_3_reads_user_4() -> None:
    """Five users, two laps, as in section 2."""
    run = quiet(ring(5, 2, OPEN))
    (reading,) = readings(run, 3)
    assert reading.users == (4,)
    assert reading.total == added(run, 4)[0, 10]


def test_a_sum_of_two_is_read_as_a_sum() -> None:
    run = quiet(ring(7, 3, OPEN))
    (reading,) = [one for one in readings(run, 4) if len(one.users) > 1]
    assert reading.users == (5, 6)
    assert reading.times == 1
    assert reading.total == added(run, 5)[0, 20] + added(run, 6)[0, 21]


@pytest.mark.parametrize("tokens", [1, 2])
def test_what_is_read_is_what_was_added(tokens: int) -> None:
    run = quiet(walk(4, 80, tokens=tokens))
    count = 0
    for observer in range(4):
        for reading in readings(run, observer):
            (user,) = reading.users
            truth = added(run, user)
            assert reading.total == sum(truth[place] for place in reading.places)
            assert user != observer
            count += reading.times
    assert count > 10


def test_a_closed_ring_hides_everybody_but_noised_values() -> None:
    run = quiet(ring(5, 3))
    assert all(_noised(run, reading) for observer in range(5) for reading in readings(run, observer))


def test_reports_are_read_where_one_is_alone_and_dummies_cover_it_on_a_ring() -> None:
    run = quiet(walk(4, 60, **HISTOGRAM))
    found = [reading for observer in range(4) for reading in readings(run, observer)]
    assert found
    assert all(np.sum(reading.total) == reading.times for reading in found)
    covered = quiet(ring(2, 3, noise=HISTOGRAM["noise"], protocol="walk.histogram", data=HISTOGRAM["data"]))
    steps = {step for observer in range(2) for one in readings(covered, observer) for _, step in one.places}
    assert steps
    assert not steps & {1, covered.plan.plan.steps}
