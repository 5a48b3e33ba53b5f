from __future__ import annotations

import math

import pytest

from p2pdp.assembly.outcome import estimate_of, outcome, truth_of
from p2pdp.runs.plan import costs_of
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import expected_of, simulated
from tests.support.pairwise_world import COUNTS, pairwise, planned

MEAN = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[task]\nkind = "mean"'
TEXT = pairwise(6, terms="survivors_min = 3", data=MEAN)
MASKED = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 9.0'


def test_the_outcome_is_that_of_the_survivors() -> None:
    for crashes, survivors in (((), [0, 1, 2, 3, 4, 5]), ((Crash(2, at_s=0.0075, down_s=None),), [0, 1, 3, 4, 5])):
        ran = simulated(TEXT, 1, *crashes)
        found = outcome(ran.run, ran.recorded, ran.world.out)
        assert found.survivors == survivors
        assert found.published == expected_of(ran.world, survivors)
        assert found.contributions == len(survivors)
        estimate, truth = estimate_of(ran.run, found), truth_of(ran.run, found, ran.rows)
        assert isinstance(estimate.standard_error, float)
        assert abs(estimate.standard_error * len(survivors) ** 0.5 - 1.0) < 1e-9  # own noise of each, and nothing else
        assert isinstance(truth, float)
        values = [float(ran.rows(user).rows[0]) for user in survivors]
        assert abs(truth - sum(values) / len(values)) < 1e-6


def test_pair_noise_that_is_not_settled_is_in_the_standard_error() -> None:
    terms = 'masks = "gaussian"\nsettle = "none"\nsurvivors_min = 3'
    ran = simulated(pairwise(6, '"ring"', terms, noise=MASKED), 1, Crash(2, at_s=0.0055, down_s=None))
    found = outcome(ran.run, ran.recorded, ran.world.out)
    assert found.survivors == [0, 1, 3, 4, 5]
    error = estimate_of(ran.run, found).standard_error
    assert error == pytest.approx(math.sqrt(5.0 + 2 * 81.0), rel=1e-9)  # of two edges to somebody who is gone


def test_errors_of_local_noise_and_of_a_curator_at_the_same_epsilon() -> None:
    run = planned(pairwise(16, data=MEAN))
    found = costs_of(run, 4.37717809568122, 1e-5)  # of mu = 1, and values are from 0 to 1
    assert found.standard_error == pytest.approx(1 / 4)
    assert found.baselines["local"]["standard_error"] == pytest.approx(1 / 4, rel=1e-6)
    assert found.baselines["central"]["standard_error"] == pytest.approx(1 / 16, rel=1e-6)


def test_counts_have_the_error_of_what_a_category_moves() -> None:
    run = planned(pairwise(16, data=COUNTS))
    found = costs_of(run, 4.37717809568122, 1e-5)
    assert found.baselines["central"]["standard_error"] == pytest.approx([math.sqrt(2.0)] * 3, rel=1e-6)
    assert found.standard_error == pytest.approx([4.0] * 3)


@pytest.mark.parametrize(
    "text",
    [
        pairwise(6, data=MEAN),
        pairwise(8, '"ring"', 'masks = "gaussian"\nsettle = "none"', noise=MASKED),
        pairwise(12, '"regular"\ndegree = 4', data=COUNTS),
    ],
)
def test_a_plan_counts_the_messages_of_a_run(text: str) -> None:
    ran = simulated(text, 1)
    found = outcome(ran.run, ran.recorded, ())
    planned_costs = costs_of(ran.run, None, 1e-5)
    assert planned_costs.messages == found.messages
    assert planned_costs.bytes == pytest.approx(ran.world.network.bytes, rel=0.3)
