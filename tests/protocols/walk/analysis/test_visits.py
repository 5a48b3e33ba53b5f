"""Which law of visits a plan rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.privacy.visits import STEPS_MAX
from p2pdp.protocols.walk.analysis.visits import Visits
from tests.support import runs
from tests.support.plans import DELTA, plan


def test_a_single_token_begins_at_user_0() -> None:
    visits = Visits(plan(runs.walk(10, 100)), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([10.9] + [9.9] * 9, rel=1e-6)
    assert [law.mean for law in visits.one_token] == [law.mean for law in visits.all_tokens]


def test_several_tokens_begin_anywhere() -> None:
    visits = Visits(plan(runs.walk(10, 50, tokens=3)), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([15.0] * 10, rel=1e-6)
    assert [law.mean for law in visits.one_token] == pytest.approx([5.0] * 10, rel=1e-6)


def test_on_other_graphs_degrees_decide() -> None:
    visits = Visits(plan(runs.walk(5, 400, "star")), DELTA)
    assert [law.mean for law in visits.all_tokens] == pytest.approx([200.0] + [50.0] * 4, abs=0.5)
    both = Visits(plan(runs.walk(5, 400, "star", tokens=2)), DELTA)
    assert [law.mean for law in both.all_tokens] == pytest.approx([400.0] + [100.0] * 4, abs=1.0)


def test_where_the_law_is_not_computed_all_steps_may_be_anybodys() -> None:
    for run in (
        plan(runs.walk(4, STEPS_MAX + 1, "star", tokens=2)),
        replace(plan(runs.walk(4, STEPS_MAX + 1, "star", tokens=2)), graph=None),
    ):
        visits = Visits(run, DELTA)
        assert [law.mean for law in visits.all_tokens] == [2.0 * (STEPS_MAX + 1)] * 4
        assert "every step" in visits.basis
    small = replace(plan(runs.walk(4, 30, "star")), graph=None)
    assert "every step" in Visits(small, DELTA).basis
