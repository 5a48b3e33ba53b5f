from __future__ import annotations

import math

import pytest

from p2pdp.assembly.pools import CENTRAL, LOCAL
from p2pdp.audit.beforehand import beforehand
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.sampled import SampledSteps
from p2pdp.protocols.walk.analysis.levels import sigmas_along, sigmas_in_advance, sigmas_of
from tests.support.learners import LOGISTIC, learning, prepared

DELTA = 1e-5
PATHS = [[(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1)]]


def test_along_a_path_local_counts_contributions_and_central_is_secret_or_spread() -> None:
    run, _ = prepared(learning(3, 6))
    found = sigmas_along(run, PATHS, 2.0, DELTA)
    unit = 2.0 / gaussian.mu_of_curve(2.0, DELTA)
    assert found[LOCAL] == pytest.approx(math.sqrt(2) * unit, rel=1e-6)
    spread = math.sqrt(1 / 2 + 1 / 1) * unit  # user 2, at steps 4 and 6
    assert found[CENTRAL] is not None
    assert 0.5 * spread < found[CENTRAL] < spread, "drawing in secret is worth more here"


def test_in_advance_each_level_meets_epsilon() -> None:
    run, _ = prepared(learning(30, 300))
    found = sigmas_in_advance(run, 2.0, DELTA)
    assert found[LOCAL] is not None
    assert found[CENTRAL] is not None
    assert found[LOCAL] > 3 * found[CENTRAL]
    noised, _ = prepared(learning(30, 300, sigma=found[LOCAL]))
    told = beforehand(noised, DELTA, (), one_value=False).claims
    claim = next(one for one in told if one.method == "local")
    assert claim.epsilon_max == pytest.approx(2.0, rel=1e-4)
    secret = SampledSteps(2.0 / found[CENTRAL], 30, 300, DELTA).known(0)
    assert 1.99 < secret <= 2.0


def test_where_steps_may_expand_central_is_secret_all_the_same() -> None:
    wild, _ = prepared(learning(3, 6, task=LOGISTIC.replace("0.2", "9.0")))
    found = sigmas_along(wild, PATHS, 2.0, DELTA)[CENTRAL]
    assert found is not None
    assert SampledSteps(2.0 / found, 3, 6, DELTA).known(0) == pytest.approx(2.0, rel=5e-3)
    assert sigmas_in_advance(wild, 2.0, DELTA)[CENTRAL] == pytest.approx(found)


def test_nothing_is_compared_without_a_finite_epsilon_or_noise() -> None:
    run, _ = prepared(learning(3, 6))
    for epsilon in (None, 0.0, math.inf):
        assert sigmas_of(run, PATHS, epsilon, DELTA) == {LOCAL: None, CENTRAL: None}
    bare, _ = prepared(learning(3, 6, sigma=None))
    assert sigmas_of(bare, PATHS, 2.0, DELTA) == {LOCAL: None, CENTRAL: None}
