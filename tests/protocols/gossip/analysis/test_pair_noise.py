"""Noise of pairs in all contributions at once, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis.pair_noise import Contributed, drawn_together, ends_of
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support.gossips import gossip

SHARED = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 6.0'


def planned(n: int = 7, kind: str = "ring", noise: str = SHARED, dimensions: int = 1) -> RunPlan:
    return plan_run(parse_spec(gossip(n, kind, noise=noise), None), n, dimensions)


def laplacian(run: RunPlan) -> np.ndarray:
    found = np.zeros((run.n, run.n))
    for low, high in ends_of(run):
        across = np.eye(run.n)[low] - np.eye(run.n)[high]
        found += np.outer(across, across)
    return found


def test_it_is_added_at_one_end_and_subtracted_at_the_other() -> None:
    run = planned(6, "star", dimensions=3)
    drawn = drawn_together(run, 1, 2000)
    assert drawn.shape == (6, 2000, 3)
    assert np.abs(drawn.sum(axis=0)).max() < 1e-9
    assert (drawn[1:].std(axis=(1, 2)) / 6.0) == pytest.approx(np.ones(5), rel=0.05)
    assert np.cov(drawn[:, :, 0]) / 36.0 == pytest.approx(laplacian(run), abs=0.4)
    np.testing.assert_array_equal(drawn, drawn_together(run, 1, 2000))
    assert not np.array_equal(drawn, drawn_together(run, 2, 2000))


def test_it_is_on_the_grid_of_noise_and_none_without_pairs() -> None:
    run = planned()
    steps = drawn_together(run, 3, 4) / run.plan.step
    np.testing.assert_array_equal(steps, steps.round())
    without = planned(noise='mechanism = "gaussian"\nsigma = 2.0')
    assert not drawn_together(without, 3, 4).any()
    assert ends_of(without).shape == (0, 2)


def test_what_is_left_in_results_is_a_quadratic_form_of_shares() -> None:
    run = planned()
    covariance = np.eye(7) + 9.0 * laplacian(run)
    shares = np.random.default_rng(1).normal(size=(7, 3))
    assert Contributed(run).of_shares(shares) == pytest.approx(np.trace(shares.T @ covariance @ shares))
    symmetric = shares @ shares.T
    values, vectors = np.linalg.eigh(symmetric)
    mean = np.trace(symmetric @ covariance @ symmetric) / 7
    assert Contributed(run).of_spectrum(values, vectors) == pytest.approx(mean)
    assert not Contributed(run).is_own
    without = Contributed(planned(noise='mechanism = "gaussian"\nsigma = 2.0'))
    assert without.is_own
    assert without.of_shares(shares) == pytest.approx(np.sum(shares**2))
    assert without.of_spectrum(values, vectors) == pytest.approx(np.trace(symmetric @ symmetric) / 7)
