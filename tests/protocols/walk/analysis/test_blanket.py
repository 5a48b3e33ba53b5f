"""Claims about histograms: the gaps of guide/accounting.md, section 2, and an attack that must not beat them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from p2pdp.auditor.context import AccountResult, AuditContext
from p2pdp.auditor.local import local_account
from p2pdp.core.claims import Claim
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR
from p2pdp.core.values import ZERO_FORM, LinearForm, Source
from p2pdp.privacy.shuffle.several import Kind, kinds_of, upper_epsilons
from p2pdp.protocols.walk.analysis.blanket import ReportGap, Reports, ReportView, blanket_account
from p2pdp.replay.transcript import Transcript, replay
from p2pdp.sim.faults import Crash
from tests.support import histograms
from tests.support.report_paths import path_of
from tests.support.runs import DELTA, HISTOGRAM, Run, judged, quiet, ring, run_of, walk

EPSILON_0, CATEGORIES = 1.0, 3


def context(run: Run, colluders: Sequence[int] = (), incomplete: Sequence[int] = ()) -> AuditContext:
    return AuditContext(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)


def claim(finding: AccountResult, observer: str) -> Claim:
    (found,) = [one for one in finding.claims if one.observer == observer]
    return found


def epsilon(*kinds: Counter[Kind]) -> float:
    return float(upper_epsilons(EPSILON_0, CATEGORIES, [sum(kinds, Counter())], DELTA)[0])


def times(others: int, dummies: int, count: int = 1) -> Counter[Kind]:
    return Counter({Kind(others, dummies): count} if count else {})


def test_every_pair_of_a_ring_has_its_own_gaps() -> None:
    """First gaps with the elements of the first holder, whole laps, last gaps with those of the last holder."""
    n, laps = 7, 4
    run = quiet(ring(n, laps, **HISTOGRAM))
    finding, put_in = blanket_account(context(run)), run.plan.plan.dummies
    assert finding.epsilon is not None
    for v in range(n):
        assert math.isnan(finding.epsilon[v, v])
        for u in set(range(n)) - {v}:
            if u < v:
                kinds = times(v - 1, put_in), times(n - 2, 0, laps - 1)
            else:
                kinds = times(n - 2 - v, put_in), times(n - 2, 0, laps - 1)
            assert finding.epsilon[u, v] == pytest.approx(epsilon(*kinds), rel=5e-3)
    everything = claim(finding, "public")
    assert everything.epsilon_max == pytest.approx(epsilon(kinds_of(laps, laps * (n - 1), 2 * put_in)), rel=5e-3)
    node = claim(finding, "node")
    assert node.epsilon_max == np.nanmax(finding.epsilon)
    assert node.epsilon_mean == pytest.approx(np.nanmean(finding.epsilon))
    user, observer = node.worst_pair or (0, 0)
    assert isinstance(observer, int)
    assert finding.epsilon[user, observer] == node.epsilon_max


def test_a_random_walk_is_counted_as_it_went() -> None:
    run = quiet(walk(5, 80, **HISTOGRAM))
    finding = blanket_account(context(run))
    assert finding.epsilon is not None
    (path,) = path_of(run).values()
    for v in range(5):
        gaps, gap = [], Counter[int]()
        for step in range(1, 81):
            if path[step] == v:
                gaps.append(gap)
                gap = Counter()
            else:
                gap[path[step]] += 1
        for u in set(range(5)) - {v}:
            kinds = [kinds_of(one[u], one.total() - one[u], 0) for one in [*gaps, gap] if one[u]]
            assert finding.epsilon[u, v] == pytest.approx(epsilon(*kinds), rel=5e-3)


@pytest.mark.parametrize(
    "text",
    [
        ring(5, 3, **HISTOGRAM),
        ring(5, 3, tokens=2, **HISTOGRAM),
        walk(5, 60, **HISTOGRAM),
        walk(4, 20, tokens=3, **HISTOGRAM),
        ring(1, 3, **HISTOGRAM),
        ring(2, 2, **HISTOGRAM),
    ],
)
def test_nobody_learns_more_than_the_local_ceiling(text: str) -> None:
    run = quiet(text)
    (ceiling,) = local_account(context(run)).claims
    finding = blanket_account(context(run))
    assert ceiling.epsilon_max is not None
    for one in finding.claims:
        assert one.epsilon_max is not None
        assert 0.0 < one.epsilon_max <= ceiling.epsilon_max * (1.0 + 1e-8)
        assert (one.method, one.conditioning, one.relation, one.bound) == ("shuffle", "public", "replace", True)
        assert one.mu_max is None
    assert {one.observer for one in finding.claims} >= {"curator", "public"}
    assert [one.observer for one in finding.refusals] == ["network"]
    assert "local ceiling" in finding.refusals[0].reason


def test_who_pools_views_sees_smaller_gaps() -> None:
    run = quiet(ring(7, 3, **HISTOGRAM))
    finding = blanket_account(context(run, (1, 4)))
    pooled = claim(finding, "coalition")
    assert finding.epsilon is not None
    assert pooled.epsilon_max is not None
    assert pooled.epsilon_max > max(np.nanmax(finding.epsilon[[2, 3]][:, [1, 4]]), 0.0)
    assert pooled.worst_pair is not None
    assert pooled.worst_pair[0] not in (1, 4)
    assert pooled.worst_pair[1] == (1, 4)
    alone = claim(blanket_account(context(run, (2,))), "coalition")
    assert alone.epsilon_max == pytest.approx(np.nanmax(finding.epsilon[:, 2]), rel=5e-3)


def test_assumptions_say_who_knows_the_route_and_what_is_told_at_least() -> None:
    on_ring, at_random = (
        claim(blanket_account(context(quiet(text))), "node")
        for text in (ring(7, 3, **HISTOGRAM), walk(5, 40, **HISTOGRAM))
    )
    assert any("schedule is public" in text for text in on_ring.assumptions)
    assert any("realised path" in text for text in at_random.assumptions)
    assert any("hypothetical" in text for text in on_ring.assumptions)
    (least,) = [text for text in on_ring.assumptions if "at least" in text]
    assert on_ring.epsilon_max is not None
    assert 0.5 * on_ring.epsilon_max < float(least.split("epsilon ")[1].split()[0]) <= on_ring.epsilon_max


def test_other_noise_is_none_of_its_business() -> None:
    for text in (ring(4, 2), walk(3, 12, **{**HISTOGRAM, "noise": '[noise]\nmechanism = "none"\n'})):
        assert blanket_account(context(quiet(text))) == AccountResult()


def test_observers_whose_ledgers_are_missing_are_refused_by_name() -> None:
    run = quiet(walk(4, 24, **HISTOGRAM))
    views = {peer: one for peer, one in run.contents().items() if peer not in (2, CURATOR)}
    finding = blanket_account(AuditContext(run.plan, views, replay(run.plan, views), (2, CURATOR), DELTA, (1, 2)))
    refused = {(one.observer, one.reason.partition(":")[0]) for one in finding.refusals}
    assert ("node", "user 2") in refused
    assert ("coalition", "user 2") in refused
    assert any(one.observer == "curator" for one in finding.refusals)
    assert claim(finding, "node").worst_pair != (2, 2)


def test_the_audit_shows_every_pair() -> None:
    audit = judged(quiet(ring(5, 2, **HISTOGRAM)).evidence)
    assert [one.method for one in audit.claims] == ["shuffle", "shuffle", "shuffle", "local"]
    assert audit.epsilon_conditioning == "public"
    assert audit.epsilon is not None
    assert np.isfinite(audit.epsilon).sum() == 20


def test_a_walk_round_somebody_who_is_gone_is_claimed_as_it_went() -> None:
    run = run_of(walk(4, 40, seed=3, **HISTOGRAM), Crash(peer=2, at_record=20, down_s=None))
    finding = blanket_account(AuditContext(run.plan, run.contents(), run.transcript(), (2,), DELTA, ()))
    assert claim(finding, "node").worst_pair is not None
    assert any("user 2" in one.reason for one in finding.refusals)
    assert finding.epsilon is not None
    assert np.all(np.isnan(finding.epsilon[:, 2]))
    assert np.isfinite(finding.epsilon[2, [0, 1, 3]]).all()


REPLAYS = 40_000
ERROR = 1e-7  # of each of the two rates, for each of the ten thresholds


def scores(gaps: Sequence[ReportGap], user: int, own: int, epsilon_0: float, random: np.random.Generator) -> np.ndarray:
    """Log-likelihood ratios of 0 against 1 of replays in which the user holds `own` and all others hold 2."""
    total = np.zeros(REPLAYS)
    for gap in gaps:
        if not gap.reports[user]:
            continue
        held = [2] * int(gap.reports.sum() - gap.reports[user])
        laws = [
            histograms.histogram(epsilon_0, 3, [*held, *[value] * int(gap.reports[user])], gap.dummies)
            for value in (0, 1)
        ]
        outcomes = list(laws[0])
        ratios = np.array([math.log(laws[0][one] / laws[1][one]) for one in outcomes])
        chances = np.array([laws[own][one] for one in outcomes])
        total += ratios[random.choice(len(outcomes), REPLAYS, p=chances / chances.sum())]
    return total


@pytest.mark.parametrize("text", [ring(6, 3, **HISTOGRAM), walk(5, 40, **HISTOGRAM)])
def test_the_best_attack_is_within_the_claim(text: str) -> None:
    """Thresholds from one half of the replays, rates from the other (guide/accounting.md, section 5)."""
    from scipy.stats import beta

    run = quiet(text)
    delta, random = 1e-3, np.random.default_rng(11)
    finding = blanket_account(AuditContext(run.plan, run.contents(), run.transcript(), (), delta, ()))
    (user, observer), best = claim(finding, "node").worst_pair or (0, 0), 0.0
    assert isinstance(observer, int)
    view = Reports(run.transcript(), run.plan.n).nodes([observer])
    assert view is not None
    one, other = (scores(view.gaps, user, own, EPSILON_0, random) for own in (0, 1))
    half = REPLAYS // 2
    for threshold in np.quantile(one[:half], np.linspace(0.05, 0.95, 10)):
        hits, false = (int((score[half:] > threshold).sum()) for score in (one, other))
        low = float(beta.ppf(ERROR / 2, hits, half - hits + 1)) if hits else 0.0
        high = float(beta.isf(ERROR / 2, false + 1, half - false))
        if low > delta:
            best = max(best, math.log((low - delta) / high))
    claimed = claim(finding, "node").epsilon_max
    assert claimed is not None
    assert 0.2 * claimed < best <= claimed


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
