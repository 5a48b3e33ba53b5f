"""A run's course against its forms written out, which know nothing of weights."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.protocols.gossip.analysis import descent_views as module
from p2pdp.protocols.gossip.analysis.descent_views import DescentViews, course_of, work_of
from p2pdp.replay.transcript import Transcript
from p2pdp.sim.faults import Crash
from tests.support.gossip_learners import LINEAR, gossip_learning
from tests.support.gossips import context_of
from tests.support.runs import quiet, run_of

SPECS = {
    "ring": gossip_learning(5, "ring"),
    "changing": gossip_learning(5, "changing", "rounds = 2\naccelerated = true"),
    "noised": gossip_learning(4, "star", "rounds = 2\nmessage_sigma = 0.3"),
    "accelerated": gossip_learning(5, "path", "rounds = 3\naccelerated = true\nmessage_sigma = 0.2", task=LINEAR),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("members", [[0], [1, 3]])
def test_weights_tell_what_forms_tell(name: str, members: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ground = context_of(quiet(SPECS[name]))
    views = DescentViews(ground)
    assert views.regular
    decay = ground.run.plan.descent.regularization
    by_weights = views.told(members, decay)
    monkeypatch.setattr(module, "_follows_weights", lambda *_: False)
    written = DescentViews(ground)
    assert not written.regular
    np.testing.assert_allclose(written.told(members, decay).grams, by_weights.grams, rtol=0, atol=1e-9)


def test_a_run_that_does_not_follow_the_weights_is_found() -> None:
    late = context_of(run_of(gossip_learning(4, "ring", patience_s=0.5), Crash(3, at_s=0.012, down_s=3.0)))
    assert not DescentViews(late).regular
    ground = context_of(quiet(SPECS["ring"]))
    ground.transcript.received[0].pop()
    assert not DescentViews(ground).regular


def test_what_cannot_be_told_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    published = context_of(quiet(gossip_learning(4, "path", 'rounds = 1\npublish = "all"')))
    views = DescentViews(published)
    assert views.reason is None
    assert views.work > 0.0
    everything = views.told([], 0.0)
    assert np.isclose(np.trace(everything.grams.sum(axis=0)), 4.0), "four models are as many rows"
    monkeypatch.setattr(module, "_NUMBERS_MAX", 10)
    assert "too large" in str(DescentViews(published).reason)
    published.transcript.published = None
    assert "not at hand" in str(DescentViews(published).reason)
    assert isinstance(published.transcript, Transcript)


def test_a_course_has_the_rates_and_what_steps_take_away() -> None:
    plan = quiet(SPECS["accelerated"]).plan.plan
    course = course_of(plan, [], 0.1)
    assert course.gain == [0.4] * 4
    assert course.shrink == pytest.approx([0.96] * 4)
    assert course.ratio == pytest.approx(0.2 / 0.8)
    assert work_of(100, 10, 5, noised=True) > work_of(100, 10, 5, noised=False) > work_of(50, 10, 5, noised=False)
