"""Who reported in which gap, against the path that the public parts of ledgers tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from p2pdp.core.draws import Mechanism
from p2pdp.core.values import ZERO_FORM, LinearForm, Source
from p2pdp.replay.reports import Reports, ReportView
from p2pdp.replay.transcript import Transcript
from p2pdp.sim.faults import Crash
from tests.support.report_paths import path_of
from tests.support.runs import HISTOGRAM, Run, quiet, ring, run_of, walk

Found = Counter[tuple[tuple[int, ...], int]]


def expected(run: Run, members: Iterable[int]) -> Found:
    """Gaps by the path, of runs of one token in which nothing was lost."""
    plan, known = run.plan.plan, set(members)
    (path,) = path_of(run).values()
    gaps, reports, dummies = [], [0] * plan.n, 0
    for step in range(1, plan.steps + 1):
        user = path[step]
        if user in known:
            gaps.append((tuple(reports), dummies))
            reports, dummies = [0] * plan.n, 0
        else:
            reports[user] += 1
            dummies += plan.dummies * ((step == 1) + (step == plan.steps))
    return +Counter([gap for gap in [*gaps, (tuple(reports), dummies)] if any(gap[0]) or gap[1]])


def found(view: ReportView | None) -> Found:
    assert view is not None
    assert view.exact
    gaps = [(tuple(gap.reports.tolist()), gap.dummies) for gap in view.gaps]
    return Counter([gap for gap in gaps if any(gap[0]) or gap[1]])


@pytest.mark.parametrize("text", [walk(5, 60, **HISTOGRAM), ring(5, 3, **HISTOGRAM), ring(2, 2, **HISTOGRAM)])
def test_gaps_are_what_lies_between_visits(text: str) -> None:
    run = quiet(text)
    reports = Reports(run.transcript(), run.plan.n)
    for user in range(run.plan.n):
        assert found(reports.nodes([user])) == expected(run, [user])
    assert found(reports.nodes([0, 1])) == expected(run, [0, 1])
    assert found(reports.curator()) == found(reports.public()) == expected(run, [])


def test_what_nobody_in_the_view_drew_hides_the_first_and_the_last_gap() -> None:
    run = quiet(ring(5, 2, **HISTOGRAM))
    put_in = run.plan.plan.dummies
    reports = Reports(run.transcript(), 5)
    view = reports.nodes([2])
    assert view is not None
    assert [gap.dummies for gap in view.gaps] == [put_in, 0, put_in]
    by_first, by_last, of_public = reports.nodes([0]), reports.nodes([4]), reports.public()
    assert by_first is not None
    assert by_last is not None
    assert of_public is not None
    assert sum(gap.dummies for gap in by_first.gaps) == sum(gap.dummies for gap in by_last.gaps) == put_in
    assert [gap.dummies for gap in of_public.gaps] == [2 * put_in]


def test_last_gaps_of_several_tokens_are_published_as_one() -> None:
    run = quiet(walk(4, 20, tokens=3, **HISTOGRAM))
    reports, path = Reports(run.transcript(), 4), path_of(run)
    after = Counter[int]()
    for steps in path.values():
        seen = max((step for step, user in steps.items() if user == 1), default=0)
        after.update(user for step, user in steps.items() if step > seen)
    view = reports.nodes([1])
    assert tuple(after[user] for user in range(4)) in {gap[0] for gap in found(view)}
    assert len(found(reports.curator())) == 3
    ((everything, _),) = found(reports.public())
    assert sum(everything) == 60


def test_a_walk_round_somebody_who_is_gone() -> None:
    """Whoever stays reports as often as the path says, and nothing is in two gaps."""
    run = run_of(walk(4, 40, seed=3, **HISTOGRAM), Crash(peer=2, at_record=20, down_s=None))
    transcript = run.transcript()
    reports = Reports(transcript, 4)
    for user in (0, 1, 3):
        view = reports.nodes([user])
        assert view is not None
        seen = np.sum([gap.reports for gap in view.gaps], axis=0)
        for other in {0, 1, 3} - {user}:
            assert seen[other] == len(transcript.own_noise[other])


def source(user: int, number: int) -> LinearForm:
    return LinearForm.of(Source("report", user, number))


def transcript_of(received: Sequence[LinearForm], published: LinearForm | None, **rest: object) -> Transcript:
    forms = None if published is None else (published,)
    transcript = Transcript(received={0: list(received)}, published=forms)
    for name, value in rest.items():
        setattr(transcript, name, value)
    return transcript


def test_what_two_copies_of_a_token_share_is_a_gap_of_its_own() -> None:
    shared = ZERO_FORM + source(1, 0) + source(2, 0)
    one, other = shared + source(3, 0), shared + source(1, 1) + source(2, 1)
    view = Reports(transcript_of([one, other], other + source(0, 0) + source(3, 1)), 4).nodes([0])
    assert view is not None
    assert Counter(tuple(gap.reports.tolist()) for gap in view.gaps) == Counter(
        [(0, 1, 1, 0), (0, 0, 0, 1), (0, 1, 1, 0), (0, 0, 0, 1)]
    )
    assert not view.exact


def test_what_cannot_be_told_is_not() -> None:
    form = ZERO_FORM + source(1, 0)
    assert Reports(transcript_of([form], None), 2).nodes([0]) is None
    unknown = form + LinearForm.of(Source("unknown", 1, 1))
    assert Reports(transcript_of([unknown], unknown), 2).nodes([0]) is None
    assert Reports(transcript_of([], form + form), 2).nodes([0]) is None
    noised = form + LinearForm.of(Source("draw", 1, 0))
    draws = {1: [Mechanism("gaussian", 2.0)]}
    assert Reports(transcript_of([noised], noised, draws=draws), 2).nodes([0]) is None
    uniform = {1: [Mechanism("uniform_counts", 2.0, 3)]}
    view = Reports(transcript_of([noised], noised, draws=uniform), 2).nodes([0])
    assert view is not None
    assert [(gap.reports.tolist(), gap.dummies) for gap in view.gaps] == [([0, 1], 2)]


def test_who_saw_nothing_sees_what_is_published() -> None:
    assert found(Reports(transcript_of([], ZERO_FORM + source(1, 0)), 2).nodes([0])) == Counter([((0, 1), 0)])
    empty = Reports(transcript_of([], ZERO_FORM), 2).nodes([0])
    assert empty is not None
    assert empty.gaps == []
