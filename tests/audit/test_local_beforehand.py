from __future__ import annotations

import math

import pytest

from p2pdp.audit.ground import sensitivity_of
from p2pdp.audit.local_beforehand import local_beforehand
from p2pdp.mechanisms import gaussian, laplace
from tests.support.gossips import gossip
from tests.support.runs import DELTA, run_of


@pytest.mark.parametrize("times", [1, 4])
def test_gaussian_contributions_compose(times: int) -> None:
    run = run_of(gossip(3, "ring", "rounds = 1")).plan
    (claim,) = local_beforehand(run, DELTA, times).claims
    mu = math.sqrt(times) * sensitivity_of(run) / run.plan.noise.scale
    assert (claim.observer, claim.conditioning, claim.bound) == ("network", "a-priori", True)
    assert claim.mu_max == pytest.approx(mu)
    assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, mu))


def test_laplace_contributions_add_up() -> None:
    run = run_of(gossip(3, "ring", "rounds = 1", noise='mechanism = "laplace"\nsigma = 2.0')).plan
    (claim,) = local_beforehand(run, DELTA, 3).claims
    assert claim.epsilon_max == pytest.approx(3.0 * laplace.epsilon_of(math.sqrt(2.0), 1.0), rel=1e-6)


def test_no_noise_promises_nothing() -> None:
    run = run_of(gossip(3, "ring", "rounds = 1", noise='mechanism = "none"')).plan
    (claim,) = local_beforehand(run, DELTA, 1).claims
    assert claim.epsilon_max == math.inf
