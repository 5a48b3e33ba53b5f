from __future__ import annotations

import math

from p2pdp.audit.ground import Ground, sensitivity_of
from tests.support.runs import DELTA, HISTOGRAM, quiet, ring, walk


def test_sensitivity_is_that_of_the_grid_or_of_a_count() -> None:
    run = quiet(ring(3, 1))
    ground = Ground(run.plan, run.contents(), run.transcript(), (), DELTA, ())
    assert ground.sensitivity == sensitivity_of(run.plan) >= math.ldexp(1.0, -run.plan.plan.grid_exponent)
    assert math.sqrt(2.0) < sensitivity_of(quiet(walk(4, 8, **HISTOGRAM)).plan) < 1.4142136


def test_claims_of_a_seeded_run_are_hypothetical_and_name_the_grid() -> None:
    run = quiet(ring(3, 1))
    first, second = Ground(run.plan, {}, run.transcript(), (), DELTA, ()).assumptions
    assert "treated as continuous" in first
    assert "hypothetical" in second


def test_a_user_is_at_hand_if_its_ledger_is_whole_and_there() -> None:
    run = quiet(ring(3, 1))
    ground = Ground(run.plan, {}, run.transcript(), (1,), DELTA, ())
    assert [ground.is_at_hand(user) for user in (0, 1, 2, 3)] == [True, False, True, False]
