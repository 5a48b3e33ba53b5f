"""Traces of worlds against what their ledgers' own records say of the path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.privacy.iteration.path import exposures
from p2pdp.protocols.walk.analysis.traces import TraceAuditor
from tests.support.learners import learning
from tests.support.runs import quiet
from tests.support.token_paths import paths

SPECS = {
    "complete": learning(5, 40),
    "tokens": learning(4, 20, tokens=3),
    "grid": learning(6, 40, kind="grid"),
    "schedule": learning(4, 30, task='kind = "logistic_regression"\nclip = 1.0\nrate = 0.5\nschedule = "inverse_sqrt"'),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3'),
}


@pytest.mark.parametrize("name", SPECS)
def test_leaks_are_those_of_the_gaps_between_an_observers_visits(name: str) -> None:
    run = quiet(SPECS[name])
    plan, path = run.plan.plan, paths(run)
    auditor = TraceAuditor(run.transcript(), plan)
    observers: list[Any] = [*range(run.plan.n), None]
    for observer in observers:
        gap, user, rate, number = [], [], [], 0
        for walk in path:
            for step, who in enumerate(walk):
                if who == observer:
                    number += 1
                else:
                    gap.append(number)
                    user.append(who)
                    rate.append(plan.rate_at(step + 1))
            number += 1
        expected = exposures(np.array(gap), np.array(user), np.array(rate), plan.n) / plan.noise.scale**2
        told = (auditor.nodes([observer]) if observer is not None else auditor.curator()).values
        assert told is not None
        if observer is not None:
            assert np.isnan(told[observer])
            expected[observer] = np.nan
        assert told == pytest.approx(expected, rel=1e-9, nan_ok=True)
    assert auditor.public().values == pytest.approx(auditor.curator().values, rel=1e-12)


def test_pooled_views_tell_no_less_than_one_of_them_and_the_network_most() -> None:
    run = quiet(SPECS["complete"])
    auditor = TraceAuditor(run.transcript(), run.plan.plan)
    one, two, all_of_it = (auditor.nodes([1]).values, auditor.nodes([1, 3]).values, auditor.network().values)
    assert one is not None
    assert two is not None
    assert all_of_it is not None
    others = [0, 2, 4]
    assert np.all(one[others] <= two[others] * (1 + 1e-12))
    assert np.all(two[others] <= all_of_it[others] * (1 + 1e-12))


def test_without_noise_whoever_contributed_is_told_wholly() -> None:
    run = quiet(learning(3, 30, sigma=None))
    found = TraceAuditor(run.transcript(), run.plan.plan).curator().values
    assert found is not None
    assert np.all(np.isinf(found))


def test_what_was_published_must_be_known() -> None:
    run = quiet(SPECS["complete"])
    transcript = run.transcript()
    transcript.published = None
    auditor = TraceAuditor(transcript, run.plan.plan)
    assert auditor.public().values is None
    assert auditor.nodes([0]).values is None
