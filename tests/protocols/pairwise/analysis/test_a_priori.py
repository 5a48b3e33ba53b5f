from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

from p2pdp.auditor.a_priori import claims_a_priori, epsilon_against
from p2pdp.auditor.context import COMPUTATIONAL, AuditContext
from p2pdp.auditor.exact import ExactAuditor, exact_account
from p2pdp.auditor.headline import verdict_of
from p2pdp.core.claims import Claim, Method, Observer
from p2pdp.core.errors import RunFailed
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.pairwise.analysis.a_priori import FORECAST, opened_share, pairwise_a_priori, tried_of
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.replay.foreseen import foresee
from p2pdp.runs.costing import costs_of
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import simulated
from tests.support.pairwise_world import COUNTS, NUMBERS, pairwise, planned

DELTA = 1e-5
TOLD = (Observer.NODE, Observer.COALITION, Observer.CURATOR, Observer.POOLED, Observer.PUBLIC)
REGULAR = '"regular"\ndegree = 4'
GAUSSIAN = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0'


def by_observer(run: RunPlan, colluders: Sequence[int] = ()) -> dict[str, Claim]:
    claims = pairwise_a_priori(run, DELTA, colluders).claims
    return {one.observer: one for one in claims if one.method == Method.EXACT}


def foreseen(run: RunPlan, colluders: Sequence[int]) -> dict[str, Claim]:
    """The claims that the linear account makes of the messages of a run in which nobody vanishes."""
    found = exact_account(AuditContext(run, {}, foresee(run).transcript, (), DELTA, colluders))
    return {one.observer: one for one in found.claims}


@pytest.mark.parametrize("graph", ['"ring"', '"complete"', REGULAR])
@pytest.mark.parametrize("masks", ["uniform", "gaussian"])
@pytest.mark.parametrize("settle", ["shares", "none"])
@pytest.mark.parametrize("colluders", [(2,), (0, 3), (0, 1, 4, 5)])
def test_where_nobody_may_vanish_they_are_those_of_all_messages(
    graph: str, masks: str, settle: str, colluders: tuple[int, ...]
) -> None:
    """Closed forms on the graph against rows of symbols that the machines made."""
    terms = f'masks = "{masks}"\nsettle = "{settle}"\nsurvivors_min = 8'
    text = pairwise(8, graph, terms, noise=GAUSSIAN if masks == "gaussian" else "", privacy="colluders_max = 4")
    run = planned(text)
    said, exact = by_observer(run, colluders), foreseen(run, colluders)
    for observer in TOLD:
        assert said[observer].mu_max == pytest.approx(exact[observer].mu_max, rel=1e-9), observer
        assert said[observer].epsilon_max == pytest.approx(exact[observer].epsilon_max, rel=1e-9)
        assert any("computational" in one for one in said[observer].assumptions)
        assert said[observer].bound
        assert said[observer].conditioning == "a-priori"
    if settle == "none":
        assert said["network"].mu_max == pytest.approx(exact["network"].mu_max, rel=1e-9)
    else:
        (refusal,) = pairwise_a_priori(run, DELTA, colluders).refusals
        assert refusal.observer == Observer.NETWORK
        assert f"{exact['network'].epsilon_max:.4g}" in refusal.reason


@pytest.mark.parametrize(("data", "moved"), [(COUNTS, math.sqrt(2.0)), (NUMBERS.replace("0.0, 1.0", "-2.0, 1.0"), 3.0)])
def test_counts_and_numbers_move_as_far_as_their_values_may(data: str, moved: float) -> None:
    run = planned(pairwise(9, data=data))
    said, exact = by_observer(run), foreseen(run, ())
    assert said[Observer.CURATOR].mu_max == pytest.approx(moved / math.sqrt(6), rel=1e-6)
    assert exact[Observer.CURATOR].mu_max == pytest.approx(moved / math.sqrt(9), rel=1e-6)


def test_pair_noise_that_is_not_settled_hides_no_less_once_somebody_vanished() -> None:
    text = pairwise(12, '"complete"', 'masks = "gaussian"\nsettle = "none"\nsurvivors_min = 9', noise=GAUSSIAN)
    ran = simulated(text, 1, *(Crash(user, at_s=0.0055, down_s=None) for user in (1, 6)))
    assert sorted(ran.world.out) == [1, 6]
    found = exact_account(AuditContext(ran.run, ran.recorded.views, ran.recorded.transcript, (), DELTA, (5, 7)))
    said = by_observer(ran.run, (5, 7))
    for one in found.claims:
        if one.observer in said:
            assert one.mu_max is not None
            assert one.mu_max <= (said[one.observer].mu_max or 0.0) * (1.0 + 1e-9), one.observer


@pytest.mark.parametrize("masks", ["uniform", "gaussian"])
@pytest.mark.parametrize("gone", [(2,), (1, 6), (0, 4, 9)])
def test_what_is_claimed_in_advance_covers_runs_from_which_users_vanish(masks: str, gone: tuple[int, ...]) -> None:
    """Audits of such runs; and what they say is what the components that are left come to."""
    terms = f'masks = "{masks}"\nsurvivors_min = 9'
    text = pairwise(12, '"complete"', terms, noise=GAUSSIAN if masks == "gaussian" else "")
    ran = simulated(text, 1, *(Crash(user, at_s=0.0075, down_s=None) for user in gone))
    assert sorted(ran.world.out) == list(gone)
    found = exact_account(AuditContext(ran.run, ran.recorded.views, ran.recorded.transcript, (), DELTA, (5, 7)))
    audited = {one.observer: one for one in found.claims}
    said = by_observer(ran.run, (5, 7))
    for observer in TOLD:
        assert audited[observer].mu_max <= said[observer].mu_max * (1.0 + 1e-9), observer
    left = 12 - len(gone)
    uniform = {Observer.CURATOR: left, Observer.POOLED: left - 2, Observer.PUBLIC: left, Observer.NODE: left - 1}
    for observer, others in uniform.items():
        least = 1.0 / math.sqrt(others)
        if masks == "gaussian" and observer in (Observer.CURATOR, Observer.POOLED):  # a complete graph of so many
            least = math.sqrt(1.0 / others + (1.0 - 1.0 / others) / (1.0 + 9.0 * others))
        assert audited[observer].mu_max == pytest.approx(least, rel=1e-6), observer


def test_a_target_is_met_by_those_who_may_be_left_and_no_more_than_met() -> None:
    for colluders in (0, 3):
        noise = 'mechanism = "gaussian"\nepsilon = 0.7\ndelta = 1e-5'
        run = planned(pairwise(30, '"regular"\ndegree = 10', noise=noise, privacy=f"colluders_max = {colluders}"))
        claim = by_observer(run)[Observer.POOLED if colluders else Observer.CURATOR]
        assert claim.epsilon_max == pytest.approx(0.7, rel=1e-6)
        assert (Observer.POOLED in by_observer(run)) == (colluders > 0)
        assert claim.mu_max == pytest.approx(1.0 / (0.2 * math.sqrt(20 - colluders)) * _sigma(run, 0.2), rel=1e-6)


def _sigma(run: RunPlan, unit: float) -> float:
    return unit / math.ldexp(run.plan.noise.scale, run.plan.grid_exponent)


def test_a_graph_that_breaks_is_claimed_for_by_its_typical_smallest_component() -> None:
    """On a ring of 40 of which 14 are taken out, somebody is alone next to always."""
    run = planned(pairwise(40, '"ring"', "survivors_min = 30", privacy="colluders_max = 4"))
    assert run.plan.hidden == 1
    pooled, curator = (by_observer(run)[one] for one in (Observer.POOLED, Observer.CURATOR))
    assert pooled.mu_max == pytest.approx(1.0, rel=1e-9)
    assert curator.mu_max is not None
    assert curator.mu_max <= 1.0 + 1e-9
    hidden = next(one for one in pooled.assumptions if "hide each other" in one)
    assert hidden.startswith("1 honest users hide each other; fewer do in 0.0%")


def test_without_a_graph_the_signed_number_counts_and_gaussian_masks_are_refused() -> None:
    text = pairwise(20, REGULAR, privacy="colluders_max = 2")
    run = planned(text)
    bare = plan_of_facts(run.spec, run.facts)
    assert bare.graph is None
    assert by_observer(bare)[Observer.CURATOR].mu_max == by_observer(run)[Observer.CURATOR].mu_max
    assert by_observer(bare)[Observer.POOLED].mu_max == pytest.approx(1.0, rel=1e-9)  # who has parts is not known
    all_stay = planned(pairwise(20, REGULAR, "survivors_min = 20", privacy="colluders_max = 2"))
    claim = by_observer(plan_of_facts(all_stay.spec, all_stay.facts))[Observer.POOLED]
    assert claim.mu_max == pytest.approx(by_observer(all_stay)[Observer.POOLED].mu_max, rel=1e-12)
    masked = planned(pairwise(20, REGULAR, 'masks = "gaussian"', noise=GAUSSIAN, privacy="colluders_max = 2"))
    bare = plan_of_facts(masked.spec, masked.facts)
    assert Observer.CURATOR in {one.observer for one in pairwise_a_priori(bare, DELTA, ()).refusals}
    assert by_observer(bare)[Observer.POOLED].mu_max == pytest.approx(1.0, rel=1e-9)


def test_more_noise_tells_less_to_everybody() -> None:
    less, more = (planned(pairwise(12, noise=f'mechanism = "gaussian"\nsigma = {sigma}')) for sigma in (1.0, 1.5))
    for observer, claim in by_observer(less, (1, 2)).items():
        assert by_observer(more, (1, 2))[observer].mu_max == pytest.approx(claim.mu_max / 1.5, rel=1e-9)


def test_without_own_noise_all_is_told() -> None:
    run = planned(pairwise(6, noise='mechanism = "none"'))
    assert {one.epsilon_max for one in pairwise_a_priori(run, DELTA, (1,)).claims} == {math.inf}


def test_what_rests_on_no_placement_lasts() -> None:
    run = planned(pairwise(12, privacy="colluders_max = 2"))
    analysis, claims = run.protocol.analysis(), claims_a_priori(run, DELTA, (), one_value=True).claims
    lasting = {(one.observer, one.method): one for one in analysis.lasting(claims)}
    assert lasting.keys() == {
        ("node", Method.EXACT), ("curator", Method.EXACT), ("public", Method.EXACT), ("network", Method.LOCAL)
    }  # fmt: skip
    assert lasting["network", Method.LOCAL].mu_max == pytest.approx(1.0, rel=1e-9)
    assert lasting["curator", Method.EXACT].mu_max == pytest.approx(1.0 / math.sqrt(run.plan.together), rel=1e-9)
    unseen = {(one.observer, one.method) for one in analysis.without_graph(claims)}
    assert unseen == lasting.keys() - {("curator", Method.EXACT)}


def test_with_gaussian_masks_the_curator_learns_more_from_some_graphs_than_from_others() -> None:
    noise = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 8.0'
    run = planned(pairwise(12, terms='masks = "gaussian"', noise=noise))
    lasting = run.protocol.analysis().lasting(claims_a_priori(run, DELTA, (), one_value=True).claims)
    assert "curator" not in {one.observer for one in lasting}


def test_the_search_for_a_target_is_about_the_curator_and_its_colluders() -> None:
    run = planned(pairwise(12, privacy="colluders_max = 2"))
    (observer,) = run.protocol.analysis().target_observers(run)
    bound = epsilon_against((observer,), run, DELTA, one_value=True)
    assert bound == by_observer(run)[Observer.POOLED].epsilon_max
    assert bound == pytest.approx(gaussian.epsilon_of(DELTA, 1.0 / math.sqrt(6)), rel=1e-9)


def test_late_values_are_open_to_colluders_with_enough_parts() -> None:
    """On a ring two parts open a mask, which two colluders have who are a user's neighbours: 8 of 28 pairs."""
    run = planned(pairwise(8, '"ring"', privacy="colluders_max = 2"))
    assert run.graph is not None
    assert opened_share(run.graph, run.plan, (), 2, run) == pytest.approx(8 / 28, abs=0.1)
    assert opened_share(run.graph, run.plan, (0, 2), 0, run) == 1.0
    assert opened_share(run.graph, run.plan, (0, 1), 0, run) == 0.0
    exact = [
        any(set(run.graph.neighbours[user]) <= set(pair) for user in range(8) if user not in pair)
        for pair in combinations(range(8), 2)
    ]
    assert np.mean(exact) == 8 / 28
    said = by_observer(run)[Observer.POOLED].assumptions
    assert any("unless 2 of its neighbours collude" in one for one in said)
    assert COMPUTATIONAL in said


def test_colluders_below_the_threshold_open_no_late_value() -> None:
    run = planned(pairwise(12, '"complete"', privacy="colluders_max = 3"))
    said = by_observer(run)[Observer.POOLED].assumptions
    assert any(one.endswith("too few parts of its key are together") for one in said)


def named_colluders(colluders: Sequence[int], *, noise: str = "", terms: str = "survivors_min = 4") -> str:
    privacy = f"delta = 1e-5\ncolluders = {list(colluders)}\ncolluders_max = 0"
    return pairwise(8, REGULAR, terms, noise=noise, privacy=privacy)


def test_colluders_who_are_named_raise_the_threshold_of_parts() -> None:
    """Two of them open no late value where three parts are needed; where colluders are more than planned, they do."""
    run = planned(named_colluders((0, 1)))
    assert run.plan.colluders_max == 2
    assert run.plan.threshold(4) == 3
    assert by_observer(run, (0, 1))[Observer.POOLED].mu_max == pytest.approx(1.0 / math.sqrt(2), rel=1e-9)
    fewer = replace(run, plan=replace(run.plan, colluders_max=0))
    claim = by_observer(fewer, (0, 1))[Observer.POOLED]
    assert claim.mu_max == pytest.approx(1.0, rel=1e-9)
    assert claim.epsilon_max == pytest.approx(4.377, abs=1e-3)
    assert claim.bound


@pytest.mark.parametrize("colluders", [(0, 1), (0, 1, 2)])
def test_claims_about_named_colluders_cover_values_that_come_late(colluders: tuple[int, ...]) -> None:
    """One user vanishes early, another once it sent its value; at each position at which the latter may be."""
    text, late = named_colluders(colluders), 0
    run = planned(text)
    said = by_observer(run, colluders)[Observer.POOLED]
    assert run.graph is not None
    honest = [user for user in range(8) if user not in colluders]
    for gone, last in permutations(honest, 2):
        if gone in run.graph.neighbours[last] or late >= 3:
            continue
        try:
            ran = simulated(text, 3, Crash(gone, at_record=8, down_s=None), Crash(last, at_s=0.5, down_s=None))
        except RunFailed:
            continue
        late += last in ran.world.out
        found = exact_account(AuditContext(ran.run, ran.recorded.views, ran.recorded.transcript, (), DELTA, colluders))
        audited = next(one for one in found.claims if one.observer == Observer.POOLED)
        assert audited.mu_max <= said.mu_max * (1.0 + 1e-9)
    assert late


def test_colluders_at_random_who_open_most_late_values_leave_the_ceiling() -> None:
    text = pairwise(8, '"ring"', privacy="colluders_max = 4")
    run = planned(text)
    assert run.graph is not None
    assert opened_share(run.graph, run.plan, (), 4, run) > 0.5
    assert by_observer(run)[Observer.POOLED].mu_max == pytest.approx(1.0, rel=1e-9)
    stay = planned(text.replace("[pairwise]", "[pairwise]\nsurvivors_min = 8"))
    assert not any("late" in one or "put out" in one for one in by_observer(stay)[Observer.POOLED].assumptions)


def test_gaussian_masks_are_a_forecast_where_placements_are_random() -> None:
    """12 users of whom 4 may vanish: some placements exceed what most are told of."""
    noise = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 5.0'
    gaussian_masks = {"noise": noise, "privacy": "delta = 1e-5"}
    run = planned(pairwise(12, '"regular"\ndegree = 6', 'masks = "gaussian"', **gaussian_masks))
    claim = by_observer(run)[Observer.CURATOR]
    assert not claim.bound
    assert FORECAST in claim.assumptions
    assert tried_of(12) == 200
    assert tried_of(1000) == 12
    found = claims_a_priori(run, DELTA, (), one_value=True)
    headline = verdict_of(found.claims, found.refusals, run.n, DELTA).headline
    local = gaussian.epsilon_of(DELTA, 1.0)
    assert headline.epsilon == pytest.approx(local, rel=1e-6)
    assert epsilon_against((Observer.CURATOR,), run, DELTA, one_value=True) == pytest.approx(local, rel=1e-6)
    (row,) = (one for one in costs_of(run) if one.observer == Observer.CURATOR)
    assert row.epsilon == pytest.approx(local, rel=1e-6)
    stay = planned(pairwise(12, '"regular"\ndegree = 6', 'masks = "gaussian"\nsurvivors_min = 12', **gaussian_masks))
    assert by_observer(stay)[Observer.CURATOR].bound
    assert by_observer(stay, (0, 1))[Observer.POOLED].bound
    complete = planned(pairwise(12, terms='masks = "gaussian"', **gaussian_masks))
    assert by_observer(complete)[Observer.CURATOR].bound


def test_the_messages_of_a_large_run_are_accounted_for() -> None:
    """Its sum is put together two by two: one by one its partial sums alone would be too much to write out."""
    run = planned(pairwise(1500, '"regular"\ndegree = 3', "survivors_min = 1500"))
    leaks = ExactAuditor(foresee(run).transcript, run.n).public().values
    assert leaks is not None
    assert leaks * run.plan.noise.scale**2 == pytest.approx([1.0 / 1500] * 1500, rel=1e-9)
