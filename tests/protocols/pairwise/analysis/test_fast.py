from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, estimate_of, outcome, truth_of
from p2pdp.protocols.pairwise.analysis.fast import fast_sums
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.sim.trials import Trials
from tests.support.pairwise_runs import simulated
from tests.support.pairwise_world import COUNTS, pairwise

MEAN = '[data]\nkind = "uniform"\nclip = [-3.0, 1.0]\n[task]\nkind = "mean"'
MASKED = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 9.0'


def fast(run: RunPlan, rows: Any, seed: int, count: int = 1) -> list[Outcome]:
    return list(fast_sums(Trials(run, rows, seed, count, True, lambda _: (run, rows), lambda _: None)))


@pytest.mark.parametrize(
    "text",
    [
        pairwise(6, data=MEAN),
        pairwise(6, '"ring"', 'masks = "gaussian"\nsettle = "none"', noise=MASKED),
        pairwise(5, data=COUNTS),
        pairwise(4, noise='mechanism = "none"'),
    ],
)
def test_the_result_is_that_of_the_world_on_the_same_seed(text: str) -> None:
    ran = simulated(text, 5)
    slow = outcome(ran.run, ran.recorded, ())
    (quick,) = fast(ran.run, ran.rows, 5)
    mine, theirs = estimate_of(ran.run, quick), estimate_of(ran.run, slow)
    assert mine.value == theirs.value
    assert mine.standard_error == pytest.approx(theirs.standard_error)
    assert truth_of(ran.run, quick, ran.rows) == truth_of(ran.run, slow, ran.rows)
    assert np.all(quick.published == slow.published)
    assert quick.survivors == slow.survivors
    assert quick.messages == ran.run.exchanges


def test_each_trial_has_noise_of_its_own() -> None:
    ran = simulated(pairwise(3, data=MEAN), 5)
    results = [found.published for found in fast(ran.run, ran.rows, 5, 4)]
    assert len(set(results)) == 4
    assert results[2] == fast(ran.run, ran.rows, 7)[0].published
