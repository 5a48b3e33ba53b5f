from __future__ import annotations

import math

import pytest

from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.descent_levels import CENTRAL, LOCAL, sigmas_along, sigmas_in_advance
from p2pdp.mechanisms import gaussian
from tests.protocols.learners import LOGISTIC, learning, prepared

DELTA = 1e-5
PATHS = [[(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1)]]


def test_along_a_path_local_counts_contributions_and_central_spreads_them() -> None:
    run, _ = prepared(learning(3, 6))
    found = sigmas_along(run, PATHS, 2.0, DELTA)
    unit = 2.0 / gaussian.mu_of_curve(2.0, DELTA)
    assert found[LOCAL] == pytest.approx(math.sqrt(2) * unit, rel=1e-6)
    assert found[CENTRAL] == pytest.approx(math.sqrt(1 / 2 + 1 / 1) * unit, rel=1e-6), "user 2, at steps 4 and 6"


def test_in_advance_each_level_meets_epsilon() -> None:
    run, _ = prepared(learning(30, 300))
    found = sigmas_in_advance(run, 2.0, DELTA)
    assert found[LOCAL] is not None
    assert found[CENTRAL] is not None
    assert found[LOCAL] > 1.5 * found[CENTRAL]
    for name, (observer, method) in {LOCAL: ("network", "local"), CENTRAL: ("public", "iteration")}.items():
        noised, _ = prepared(learning(30, 300, sigma=found[name]))
        told = beforehand(noised, DELTA, (), one_value=False).claims
        claim = next(one for one in told if (one.observer, one.method) == (observer, method))
        assert claim.epsilon_max == pytest.approx(2.0, rel=1e-4)


def test_where_steps_may_expand_central_is_unknown() -> None:
    run, _ = prepared(learning(3, 6, task=LOGISTIC.replace("0.2", "9.0")))
    assert sigmas_along(run, PATHS, 2.0, DELTA)[CENTRAL] is None
    assert sigmas_in_advance(run, 2.0, DELTA)[CENTRAL] is None
