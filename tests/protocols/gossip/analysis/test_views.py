"""Exact leaks of simulated runs: known answers, both ways to them, and whatever makes a run irregular."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from p2pdp.auditor.context import AuditContext
from p2pdp.core.ids import BOOTSTRAP, CURATOR, is_user
from p2pdp.core.values import LinearForm, Source
from p2pdp.privacy.linear.filter import filter_is_quicker
from p2pdp.privacy.linear.layers import layered_span
from p2pdp.protocols.gossip.analysis.views import GossipViews
from p2pdp.sim.faults import Crash, Partition
from tests.support.distances import all_distances
from tests.support.gossip_matrices import dense_leaks
from tests.support.gossip_specs import shared
from tests.support.gossips import context_of, gossip
from tests.support.runs import Run, quiet, run_of


def leaks(views: GossipViews, users: int) -> np.ndarray:
    found = [views.view([user]) for user in range(users)]
    spans = views.spans([view for view in found if view is not None])
    assert len(spans.spans) == users
    return np.array([span.leaks for span in spans.spans]).T


def irregular(context: AuditContext) -> GossipViews:
    """The same run without its graph, so that the slow way is taken."""
    views = GossipViews(context)
    assert views.regular
    views.regular = False
    views._lay_out()
    return views


def oracle(context: AuditContext, observer: int) -> np.ndarray:
    """By expanding every form that the observer received, for few rounds."""
    rows = []
    for form in [*context.transcript.received[observer], *(context.transcript.published or ())]:
        weights = form.expand()
        rows.append([weights.get(Source("input", user, 0), 0.0) for user in range(context.run.n)])
    return np.asarray(dense_leaks(np.array(rows).reshape(-1, context.run.n), [observer]))


@pytest.mark.parametrize("accelerated", ["false", "true"])
def test_a_hypercube_has_its_known_answers_accelerated_or_not(accelerated: str) -> None:
    context = context_of(quiet(gossip(16, "hypercube", f"rounds = 5\naccelerated = {accelerated}")))
    views = GossipViews(context)
    assert views.regular
    assert views.graph is not None
    distances = all_distances(views.graph)
    expected = np.vectorize(lambda k: 1.0 if k in (0, 4) else 4 / math.comb(4, k))(distances)
    assert leaks(views, 16) == pytest.approx(expected, abs=1e-11)
    assert leaks(irregular(context), 16) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "kind", "rounds"), [(3, "path", 2), (4, "complete", 1), (9, "ring", 3), (2, "path", 1), (7, "star", 2)]
)
def test_small_runs_agree_both_ways_and_with_expanded_forms(n: int, kind: str, rounds: int) -> None:
    context = context_of(quiet(gossip(n, kind, f"rounds = {rounds}")))
    views = GossipViews(context)
    fast, slow = leaks(views, n), leaks(irregular(context), n)
    assert fast == pytest.approx(slow, abs=1e-9)
    for observer in range(n):
        assert fast[:, observer] == pytest.approx(oracle(context, observer), abs=1e-8)
    if kind in ("path", "complete"):
        assert fast == pytest.approx(np.ones((n, n)))
    if kind == "ring":
        assert views.graph is not None
        assert fast == pytest.approx((all_distances(views.graph) <= rounds).astype(float), abs=1e-11)


def late(**faults: object) -> Run:
    terms = "rounds = 3\naccelerated = true" if faults.pop("accelerated", False) else "rounds = 3"
    crashes = faults.pop("crashes", ())
    assert isinstance(crashes, tuple)
    return run_of(gossip(16, "hypercube", terms), *crashes, **faults)


@pytest.mark.parametrize("accelerated", [False, True])
def test_rounds_that_were_skipped_are_accounted_for_as_they_went(accelerated: bool) -> None:
    """A user that is cut off for a while is gone round, and takes back what did not count."""
    cut = Partition(0.6, 4.6, frozenset({3, BOOTSTRAP, CURATOR}))
    run = late(accelerated=accelerated, delay_s=0.1, partitions=(cut,))
    assert not run.world.out
    context = context_of(run)
    views = GossipViews(context)
    assert not views.regular, "somebody has to be late for this test"
    found = leaks(views, 16)
    for observer in range(16):
        assert found[:, observer] == pytest.approx(oracle(context, observer), abs=1e-6)
    assert found.min() < 0.9


def test_a_user_that_is_gone_for_good_leaves_an_irregular_run() -> None:
    run = late(crashes=(Crash(2, at_s=0.5, down_s=None),), delay_s=0.1)
    gone = [peer for peer in run.world.out if is_user(peer)]
    context = context_of(run, incomplete=gone)
    views = GossipViews(context)
    assert gone == [2]
    assert not views.regular
    for observer in set(range(16)) - {2}:
        view = views.view([observer])
        if view is not None:
            (span,) = views.spans([view]).spans
            assert span.leaks == pytest.approx(oracle(context, observer), abs=1e-6)


def test_randomized_gossip_is_accounted_for_by_its_activations() -> None:
    context = context_of(quiet(gossip(6, "ring", "activations = 14", protocol="randomized")))
    views = GossipViews(context)
    assert not views.regular
    found = leaks(views, 6)
    for observer in range(6):
        assert found[:, observer] == pytest.approx(oracle(context, observer), abs=1e-8)
    assert found.min() < 0.9


def test_what_all_published_tells_everything() -> None:
    context = context_of(quiet(gossip(16, "hypercube", 'rounds = 1\npublish = "all"')))
    views = GossipViews(context)
    assert views.all_is_published
    assert leaks(views, 16).min() == 1.0
    one = GossipViews(context_of(quiet(gossip(16, "hypercube", 'rounds = 1\npublish = "one"'))))
    assert not one.all_is_published
    (public,) = one.spans([v for v in [one.public()] if v is not None]).spans
    assert public.leaks.sum() == pytest.approx(1.0)
    assert leaks(one, 16).min() < 0.9


def test_noise_on_messages_keeps_everybody_below_the_ceiling() -> None:
    terms = gossip(6, "ring", "rounds = 4\nmessage_sigma = {}")
    small, large = (GossipViews(context_of(quiet(terms.format(sigma)))) for sigma in (0.02, 1.0))
    clean = GossipViews(context_of(quiet(gossip(6, "ring", "rounds = 4"))))
    others = ~np.eye(6, dtype=bool)
    assert np.all(leaks(large, 6)[others] < leaks(small, 6)[others])
    assert np.all(leaks(small, 6)[others] < leaks(clean, 6)[others])
    assert not small.regular


def test_a_long_run_with_noise_on_messages_and_kills_is_passed_through_layer_by_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashes = (Crash(1, at_s=0.5, down_s=3.0), Crash(4, at_s=2.0, down_s=0.5), Crash(1, at_s=9.0, down_s=1.0))
    context = context_of(run_of(gossip(6, "ring", "rounds = 60\nmessage_sigma = 0.05"), *crashes, delay_s=0.05))
    views = GossipViews(context)
    view = views.view([0])
    assert view is not None
    assert filter_is_quicker(views.layers, view)
    passed = views.spans([view])
    assert passed.proved == 1
    monkeypatch.setattr(sys.modules[GossipViews.__module__], "filter_is_quicker", lambda *_: False)
    monkeypatch.setattr(sys.modules[GossipViews.__module__], "seen_draws_are_fresh", lambda *_: False)
    at_once = views.spans([view])
    assert passed.spans[0].leaks == pytest.approx(at_once.spans[0].leaks, rel=1e-9, abs=1e-12)
    assert passed.spans[0].rank == at_once.spans[0].rank


def test_without_noise_what_arrives_is_told() -> None:
    views = GossipViews(context_of(quiet(gossip(8, "ring", "rounds = 2", noise='mechanism = "none"'))))
    assert views.graph is not None
    assert leaks(views, 8).tolist() == (all_distances(views.graph) <= 2).astype(float).tolist()


def test_where_floats_take_rounding_for_a_row_shorter_strides_tell_them_apart() -> None:
    context = context_of(quiet(gossip(49, "grid", "rounds = 12")))
    views = irregular(context)
    view = views.view([10])
    assert view is not None
    assert layered_span(views.layers, view).rank == 41, "one too many"
    (found,) = views.spans([view]).spans
    fixed = GossipViews(context)
    (expected,) = fixed.spans([v for v in [fixed.view([10])] if v is not None]).spans
    assert found.rank == expected.rank == 40
    assert found.leaks == pytest.approx(expected.leaks, abs=1e-8)


def test_a_run_that_only_looks_regular_is_not_taken_for_one() -> None:
    context = context_of(quiet(gossip(6, "ring", "rounds = 3")))
    *forms, last = context.transcript.received[0]
    for others in (
        [last + LinearForm.of(Source("input", 3, 0)) * 1e-12],
        [last * 1.0000000001],
        [forms[0]],
        [last, last],
        [],
    ):
        assert not GossipViews(with_received(context, 0, [*forms, *others])).regular
    assert GossipViews(with_received(context, 0, [*forms, last])).regular


def with_received(context: AuditContext, user: int, forms: list[LinearForm]) -> AuditContext:
    received = {**context.transcript.received, user: forms}
    return replace(context, transcript=replace(context.transcript, received=received))


def test_results_that_reached_the_curator_and_nobody_else_are_in_its_view() -> None:
    context = context_of(quiet(gossip(6, "ring", "rounds = 3")))
    context.transcript.totals.append(context.transcript.finals[2])
    views = GossipViews(context)
    view = views.curator()
    assert not views.regular
    assert view is not None
    (span,) = views.spans([view]).spans
    assert span.leaks.sum() == pytest.approx(1.0)
    assert leaks(views, 6) == pytest.approx(leaks(GossipViews(context_of(quiet(gossip(6, "ring", "rounds = 3")))), 6))


def test_what_somebody_without_a_ledger_sent_is_refused() -> None:
    context = context_of(quiet(gossip(6, "ring", "rounds = 3")))
    context.transcript.received[0].append(LinearForm.of(Source("unknown", 5, 1)))
    views = GossipViews(context)
    assert views.view([0]) is None
    assert views.view([1, 0]) is None
    assert views.view([2]) is not None


def test_an_input_that_parts_from_its_noise_is_refused() -> None:
    context = context_of(quiet(gossip(6, "ring", "rounds = 3")))
    context.transcript.received[4].append(LinearForm.of(Source("input", 2, 0)))
    views = GossipViews(context)
    assert views.view([4]) is None
    assert views.view([3]) is not None


def test_users_who_pool_know_as_much_as_each_of_them() -> None:
    context = context_of(quiet(gossip(16, "hypercube", "rounds = 3")))
    for views in (GossipViews(context), irregular(context)):
        pooled = [views.view(members) for members in ([0], [0, 3])]
        alone, together = views.spans([view for view in pooled if view is not None]).spans
        assert np.all(together.leaks >= alone.leaks - 1e-11)
        assert together.leaks.sum() > alone.leaks.sum() + 0.5


def test_no_view_waits_with_a_covariance_as_large_as_all_pairs() -> None:
    views = GossipViews(context_of(quiet(shared(gossip(5, "ring", noise='mechanism = "gaussian"\nsigma = 1.0')))))
    waiting = [views.view([user]) for user in range(5)]
    assert all(view is not None and view.spread is None for view in waiting)
    together = views.spans([view for view in waiting if view is not None])
    alone = [views.spans([view]).spans[0] for view in waiting if view is not None]
    assert [span.leaks.tolist() for span in together.spans] == [span.leaks.tolist() for span in alone]
    assert any(0.0 < leak < 1.0 for span in alone for leak in span.leaks)
