from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from p2pdp.experiments.pairwise import CURATOR, DELTA, LOCAL, PAIRWISE, QUICK, noise_of, regular, step_mu
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import pair_leaks
from p2pdp.topology.components import taken_out

SIZE = replace(QUICK, trials=400)


@pytest.mark.parametrize("slack", [0.1, 2.0])
def test_the_covariance_of_pair_noise_gives_the_epsilon(slack: float) -> None:
    """The leak of all steps from the covariance that the drawn noise really has, given the colluders' draws."""
    noise = noise_of(SIZE, PAIRWISE, 5.0, slack)
    drawn = np.stack([np.asarray(noise(step)) for step in range(4)])
    values = np.moveaxis(drawn, 1, 0).reshape(SIZE.n, -1)
    covariance = values @ values.T / values.shape[1]
    graph = regular(SIZE.n, SIZE.degree)
    out = set(taken_out(range(SIZE.n), SIZE.colluders, 24, 0))
    honest = [user for user in range(SIZE.n) if user not in out]
    ends = [(user, near) for user, near in graph.edges() if not {user, near} & out]
    pair = -np.mean([covariance[one, other] for one, other in ends])
    own = covariance.sum() / SIZE.n  # of the sum, in which pair noise cancels
    leaks = pair_leaks(graph, math.sqrt(own), math.sqrt(pair), out)
    mu = 2.0 * SIZE.clip * math.sqrt(SIZE.steps * float(np.nanmax(leaks)))
    assert len(honest) == SIZE.n - SIZE.colluders
    assert gaussian.epsilon_of(DELTA, mu) == pytest.approx(5.0, rel=0.1)


def test_own_noise_and_the_curators_have_the_epsilon_of_their_mu() -> None:
    mu = step_mu(SIZE, 5.0) * 2.0 * SIZE.clip * math.sqrt(SIZE.steps)
    assert gaussian.epsilon_of(DELTA, mu) == pytest.approx(5.0, rel=1e-9)
    local, curator = (np.asarray(noise_of(SIZE, method, 5.0, 0.0)(0)) for method in (LOCAL, CURATOR))
    assert local.std() == pytest.approx(1.0 / step_mu(SIZE, 5.0), rel=0.02)
    assert curator.mean(axis=0).std() == pytest.approx(1.0 / step_mu(SIZE, 5.0) / SIZE.n, rel=0.05)


def test_pair_noise_cancels_in_the_sum_and_own_noise_stays() -> None:
    drawn = np.asarray(noise_of(SIZE, PAIRWISE, 5.0, 0.1)(0))
    honest = SIZE.n - SIZE.colluders
    expected = math.sqrt(1.1 * SIZE.n / honest) / step_mu(SIZE, 5.0)
    assert drawn.sum(axis=0).std() == pytest.approx(expected, rel=0.05)
    assert drawn.std() * math.sqrt(SIZE.n) > 3.0 * expected
