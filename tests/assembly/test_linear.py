"""What the forms of a run tell is what families with results of their own tell."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.assembly import linear
from p2pdp.assembly.outcome import Outcome, truth_of
from p2pdp.files.data import load_data
from p2pdp.ledger.records import read, to_skeleton
from p2pdp.protocols.gossip.analysis.outcome import error_of
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.transcript import Transcript
from tests.support.gossips import gossip
from tests.support.outcomes import outcome
from tests.support.runs import Run, ring, run_of


def told(run: Run) -> tuple[Outcome, Outcome, Any]:
    """The outcome by the family's own analysis, and by forms."""
    own = outcome(run.plan, run.evidence.views, ())
    plain = Outcome(published=own.published)
    linear.gather(run.plan, Recorded(run.plan, run.contents()), plain)
    return own, plain, load_data(run.evidence.spec, run.plan.n).user


@pytest.mark.parametrize("text", [ring(4, 2), ring(4, 1, "closing = false\n"), ring(6, 2, tokens=3)])
def test_sums_of_walks(text: str) -> None:
    run = run_of(text)
    own, plain, rows = told(run)
    assert plain.counted == own.counted
    assert linear.truth_of(run.plan, plain, rows) == pytest.approx(truth_of(run.plan, own, rows), abs=1e-6)
    error = run.plan.protocol.estimate(run.plan.plan, own.published, own.contributions).standard_error
    assert plain.deviation == pytest.approx(error)


def test_skeletons_hold_no_results_of_users() -> None:
    """Otherwise a run whose users hand in skeletons would have a result without values, which nothing can print."""
    run = run_of(gossip(5, "ring", "rounds = 3"))
    views = {peer: read(to_skeleton(data)) for peer, data in run.evidence.views.items()}
    assert linear.finals_of(views) == {}
    assert len(linear.finals_of(run.contents())) == 5


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_result_of_gossip_that_one_user_publishes(noise: str) -> None:
    run = run_of(gossip(5, "ring", 'rounds = 3\npublish = "one"', noise=f'mechanism = "{noise}"\nsigma = 2.0'))
    own, plain, rows = told(run)
    assert linear.truth_of(run.plan, plain, rows) == pytest.approx(truth_of(run.plan, own, rows), abs=1e-6)
    assert plain.deviation == pytest.approx(own.deviation, rel=1e-6)


def test_results_that_stay_with_users() -> None:
    run = run_of(gossip(5, "ring", "rounds = 3"))
    own, plain, rows = told(run)
    truth = linear.truth_of(run.plan, plain, rows)
    assert truth == pytest.approx(truth_of(run.plan, own, rows), abs=1e-6)
    assert plain.deviation == pytest.approx(own.deviation, rel=1e-6)
    assert linear.error_of(run.plan, own, None, truth) == pytest.approx(error_of(run.plan, own, None, truth))


def test_nothing_is_told_where_nothing_came_out() -> None:
    run = run_of(ring(4, 1))
    found = Outcome()
    linear.add_forms(run.plan, Transcript(), found)
    assert linear.truth_of(run.plan, found, lambda _: None) is None
    assert found.deviation is None
