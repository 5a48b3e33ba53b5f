from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit
from p2pdp.auditor.context import AuditContext
from p2pdp.core.claims import Claim
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import OPENED_REPORT, SEEN
from p2pdp.core.spec import GraphPart
from p2pdp.core.step import Message
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import SENT, carries_message, public_message
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.privacy.shuffle.published import epsilon_all, load
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis import account as module
from p2pdp.protocols.shuffle.analysis.account import (
    Timing,
    among,
    categories_of,
    claim_of_reports,
    enclosed,
    laws_with,
    not_hidden,
    printed,
    timing_of,
)
from p2pdp.protocols.shuffle.plan import RELAY
from p2pdp.replay.transcript import Transcript
from p2pdp.sim.faults import Crash
from p2pdp.topology.graphs import Graph, complete_graph, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.overlap import overlaps_of_laws
from tests.support.runs import DELTA, Run, quiet, run_of
from tests.support.shuffle_specs import EARLY, N, reports, shuffle

EPSILON = 1.0


MIXED = reports('rounds = "auto"')


def claims_of(audit: Audit) -> dict[tuple[str, str], Claim]:
    return {(claim.observer, claim.method): claim for claim in audit.claims}


def refused(audit: Audit) -> dict[tuple[str, str], str]:
    return {(refusal.observer, refusal.method): refusal.reason for refusal in audit.refusals}


def test_the_curator_has_what_the_overlaps_of_all_walks_leave() -> None:
    """guide/accounting.md, section 4, with the least kappa of each user; two values count each other's on its own."""
    claim = claims_of(quiet(EARLY).audit())["curator", "shuffle"]
    run = quiet(EARLY).world.run
    assert run.graph is not None
    kappas = overlaps_of_laws(all_laws(walk_matrix(run.graph, 0.2), 6), 6)
    least = [float(np.delete(kappas[user], user).min()) for user in range(N)]
    uppers = [overlapped(EPSILON, np.full(N - 1, kappa), DELTA, 3)[1] for kappa in least]
    assert claim.epsilon_max == pytest.approx(max(uppers), rel=1e-6)
    assert claim.epsilon_mean == pytest.approx(np.mean(uppers), rel=1e-6)
    assert claim.worst_pair == (int(np.argmax(uppers)), "curator")
    assert (claim.bound, claim.conditioning, claim.mu_max) == (True, "view", None)


def test_among_many_users_the_least_overlap_of_all_walks_counts_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    few = claims_of(quiet(EARLY).audit())["curator", "shuffle"]
    monkeypatch.setattr(module, "_LAWS_N", N - 1)
    many = claims_of(quiet(EARLY).audit())["curator", "shuffle"]
    assert many.epsilon_max == many.epsilon_mean == pytest.approx(few.epsilon_max, rel=1e-9)
    monkeypatch.setattr(module, "is_afforded", lambda _graph, _rounds: False)
    spectral = claims_of(quiet(EARLY).audit())["curator", "shuffle"]
    assert spectral.epsilon_max is not None
    assert spectral.epsilon_max >= few.epsilon_max  # type: ignore[operator]


def test_after_one_round_a_report_is_hidden_by_nobody_and_after_many_by_all() -> None:
    one = claims_of(quiet(EARLY.replace("rounds = 6", "rounds = 1")).audit())["curator", "shuffle"]
    assert one.epsilon_max == pytest.approx(EPSILON, rel=1e-4), "nothing but what delta takes off"
    mixed = claims_of(quiet(MIXED).audit())
    assert mixed["curator", "shuffle"].epsilon_max < 0.85 * EPSILON
    perfect = overlapped(EPSILON, np.ones(N - 1), DELTA, 3)[1]
    assert mixed["public", "shuffle"].epsilon_max == pytest.approx(perfect)
    assert perfect <= mixed["curator", "shuffle"].epsilon_max  # type: ignore[operator]
    assert mixed["network", "local"].epsilon_max == pytest.approx(EPSILON)


def test_relays_know_their_own_reports_and_nothing_of_those_that_they_pass_on() -> None:
    claims = claims_of(quiet(MIXED).audit(colluders=(3, 7)))
    assert claims["node", "shuffle"].epsilon_max == pytest.approx(overlapped(EPSILON, np.ones(N - 2), DELTA, 3)[1])
    both = claims["coalition", "shuffle"]
    assert both.epsilon_max == pytest.approx(overlapped(EPSILON, np.ones(N - 3), DELTA, 3)[1])
    assert both.worst_pair == (0, (3, 7))
    assert "round 1" in refused(quiet(MIXED).audit(colluders=(3, 7)))["curator+coalition", "shuffle"]


def test_routes_are_hidden_from_the_network_by_cover_only() -> None:
    assert "cover" in refused(quiet(MIXED).audit())["network", "shuffle"]
    covered = quiet(MIXED.replace('rounds = "auto"', 'rounds = "auto"\ncover = true')).audit()
    claims = claims_of(covered)
    assert claims["network", "shuffle"].epsilon_max == claims["public", "shuffle"].epsilon_max


def test_single_has_the_same_bound_for_the_curator() -> None:
    """It is post-processing of `all` (guide/accounting.md, section 4)."""
    single = claims_of(quiet(EARLY.replace("shuffle.all", "shuffle.single")).audit())
    assert single["curator", "shuffle"].epsilon_max == claims_of(quiet(EARLY).audit())["curator", "shuffle"].epsilon_max
    assert not any("at least" in said and "data" in said for said in single["curator", "shuffle"].assumptions)
    assert single["public", "shuffle"].epsilon_max > claims_of(quiet(EARLY).audit())["public", "shuffle"].epsilon_max  # type: ignore[operator]


def test_theorems_of_the_paper_are_shown_and_bound_nothing() -> None:
    found = claims_of(quiet(EARLY).audit())["curator", "published:theorem-5.3"]
    assert (found.bound, found.violated_pairs) == (False, None)
    assert ("curator", "published:theorem-5.5") in claims_of(quiet(EARLY.replace(".all", ".single")).audit())


def test_on_a_complete_graph_all_users_are_alike() -> None:
    claim = claims_of(quiet(shuffle(8, terms="rounds = 2")).audit())["curator", "shuffle"]
    assert claim.epsilon_max == claim.epsilon_mean


def test_lateness_that_no_law_takes_into_account_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LAWS_N", 3)
    late = run_of(EARLY, Crash(5, at_record=30, down_s=4.5)).audit()
    assert not {claim for claim in claims_of(late) if claim[0] == "curator" and claim[1] == "shuffle"}
    assert any(one.observer == "curator" and "late" in one.reason for one in late.refusals)


def test_lateness_is_in_the_laws() -> None:
    late = run_of(EARLY, Crash(5, at_record=30, down_s=4.5)).audit()
    claim = claims_of(late)["curator", "shuffle"]
    assert any("somebody was late" in said for said in claim.assumptions)
    assert claim.epsilon_max != claims_of(quiet(EARLY).audit())["curator", "shuffle"].epsilon_max
    assert claim.epsilon_max <= EPSILON * (1 + 1e-9)  # type: ignore[operator]


def test_who_was_put_out_and_came_back_has_a_whole_ledger_and_routes_were_told_all_the_same() -> None:
    """Bootstrap, which counts with the curator, learned hops to user 3 and from it."""
    run = run_of(EARLY, Crash(3, at_record=40, down_s=9.0))
    assert run.world.out == [3]
    bootstrap, curator = (public_messages(run, peer) for peer in (BOOTSTRAP, CURATOR))
    assert any(message.type == SEEN and message.fields[1] for message in bootstrap)
    names = {message.fields[0] for message in curator if message.type == OPENED_REPORT}
    told = {number for message in bootstrap if message.type == SEEN for part in message.fields[1:] for entry in part
            for number in entry}  # fmt: skip
    assert not names & told
    audit = run.audit()
    assert ("curator", "shuffle") not in claims_of(audit)
    assert "user 3 was put out" in refused(audit)["curator", "shuffle"]
    assert ("node", "shuffle") in claims_of(audit)


def public_messages(run: Run, peer: Peer) -> list[Message]:
    return [public_message(record) for record in run.contents()[peer].records if carries_message(record)]


def test_with_somebody_put_out_routes_are_no_longer_those_of_the_walk() -> None:
    audit = run_of(EARLY, Crash(5, at_record=30, down_s=None)).audit()
    assert "put out" in refused(audit)["curator", "shuffle"]
    assert ("public", "shuffle") in claims_of(audit)


@pytest.mark.parametrize(
    ("mechanism", "reason", "ceiling"),
    [('"none"', "not randomized", None), ('"gaussian"\nsigma = 1.0', "no pure epsilon", 4.377178)],
)
def test_what_has_no_pure_epsilon_keeps_the_local_ceiling(mechanism: str, reason: str, ceiling: float | None) -> None:
    text = EARLY.replace('"categories"', '"uniform"\nclip = [0.0, 1.0]')
    text = text.replace('"histogram"\ncategories = 3', '"mean"')
    audit = quiet(text.replace('"randomized_response"\nepsilon = 1.0', mechanism)).audit()
    assert reason in refused(audit)["curator", "shuffle"]
    local = claims_of(audit)["network", "local"].epsilon_max
    assert local == (np.inf if ceiling is None else pytest.approx(ceiling, rel=1e-5))


def test_walks_and_gossip_are_none_of_its_business() -> None:
    from p2pdp.protocols.shuffle.analysis.account import shuffle_account
    from tests.support.gossips import context_of
    from tests.support.runs import ring

    assert shuffle_account(context_of(quiet(ring(4, 1)))).claims == []


def test_without_the_curators_ledger_nothing_is_said_of_what_it_published() -> None:
    from p2pdp.protocols.shuffle.analysis.account import shuffle_account
    from tests.support.gossips import context_of

    run = quiet(EARLY)
    context: Any = context_of(run)
    views = {peer: view for peer, view in run.contents().items() if peer >= 0}
    found = shuffle_account(replace(context, views=views))
    assert {refusal.observer for refusal in found.refusals} >= {"node", "public"}
    assert plan_run(run.evidence.spec, N, 1).plan.rounds == 6


DELTA_CLAIMS = 1e-5
REALS = (
    shuffle(12).replace('"categories"', '"uniform"\nclip = [0.0, 1.0]').replace('"histogram"\ncategories = 3', '"mean"')
)


def run_of_claims(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def ground_of_claims(run: RunPlan) -> AuditContext:
    return AuditContext(run, {}, Transcript(), (), DELTA_CLAIMS, ())


def with_noise(noise: str) -> RunPlan:
    return run_of_claims(REALS.replace('"randomized_response"\nepsilon = 3.0', noise))


def test_hidden_reports_need_a_pure_epsilon() -> None:
    assert not_hidden(run_of_claims(shuffle(5)).plan) == []
    assert not_hidden(with_noise('"laplace"\nepsilon = 1.0').plan) == []
    for noise, word in (('"gaussian"\nsigma = 1.0', "no pure epsilon"), ('"none"', "not randomized")):
        found = not_hidden(with_noise(noise).plan)
        assert [refusal.observer for refusal in found] == ["curator", "public", "node"]
        assert all(word in refusal.reason for refusal in found)


def test_randomized_response_has_bounds_of_its_own() -> None:
    response, laplace = run_of_claims(shuffle(12)).plan, with_noise('"laplace"\nepsilon = 3.0').plan
    assert (categories_of(response), categories_of(laplace)) == (3, None)
    kappas = np.full(11, 0.9)
    assert enclosed(response, kappas, DELTA_CLAIMS) == overlapped(response.randomizer.epsilon, kappas, DELTA_CLAIMS, 3)
    assert enclosed(laplace, kappas, DELTA_CLAIMS) == overlapped(laplace.randomizer.epsilon, kappas, DELTA_CLAIMS, None)


def test_whoever_is_among_nobody_has_its_own_epsilon() -> None:
    plan = run_of_claims(shuffle(12)).plan
    assert among(plan, 0, DELTA_CLAIMS) == among(plan, -3, DELTA_CLAIMS) == plan.randomizer.epsilon
    assert among(plan, 5, DELTA_CLAIMS) <= among(plan, 0, DELTA_CLAIMS)
    assert among(plan, 500, DELTA_CLAIMS) < 1.1


def test_the_printed_theorem_takes_the_law_at_rest() -> None:
    run = run_of_claims(shuffle(12, 'kind = "star"'))
    assert run.graph is not None
    claim = printed(ground_of_claims(run), run.plan, run.graph, "view")
    sum_p2 = 0.25 + 11 * (1 / 22) ** 2
    e1 = load(12, sum_p2, DELTA_CLAIMS / 2, 1.0, corrected=False)
    assert claim.epsilon_max == pytest.approx(epsilon_all(run.plan.randomizer.epsilon, e1, DELTA_CLAIMS / 2))
    assert (claim.bound, claim.method, claim.conditioning) == (False, "published:theorem-5.3", "view")
    single = run_of_claims(shuffle(12, 'kind = "star"', protocol="single"))
    assert printed(ground_of_claims(single), single.plan, run.graph, "a-priori").method == "published:theorem-5.5"


def test_a_claim_has_the_largest_and_the_mean() -> None:
    run = run_of_claims(shuffle(12))
    claim = claim_of_reports(
        ground_of_claims(run), "curator", "shuffle", "view", np.array([0.5, 1.5]), (1, "curator"), ["said"]
    )
    assert (claim.epsilon_max, claim.epsilon_mean, claim.worst_pair) == (1.5, 1.0, (1, "curator"))
    assert claim.assumptions == ("said",)
    assert math.isclose(claim.delta, DELTA_CLAIMS)


RING = shuffle(5, 'kind = "ring"', terms="rounds = 4\nstay = 0.25")


def walked(graph: Graph, stay: float, rounds: int, timing: Timing, start: int, dice: Random) -> int:
    """One report, by the words of `shuffling.py` and not by its law."""
    place, number = start, 1
    while number <= rounds:
        if dice.random() < stay or not graph.neighbours[place]:
            number += 1
            continue
        to = dice.choice(list(graph.neighbours[place]))
        if (place, to, number) in timing.passed_over:
            number += 1
            continue
        place, number = to, timing.late.get((place, to, number), number + 1)
    return place


@pytest.mark.parametrize("kind", ["ring", "star", "complete"])
def test_in_time_a_report_has_the_law_of_the_walk(kind: str) -> None:
    graph = complete_graph(6) if kind == "complete" else make_graph(GraphPart(kind=kind), 6, 0)
    laws = laws_with(graph, 0.3, 5, Timing())
    np.testing.assert_allclose(laws, all_laws(walk_matrix(graph, 0.3), 5), atol=1e-14)


@pytest.mark.parametrize("passed_over", [set(), {(0, 4, 1), (3, 4, 2), (0, 1, 3)}])
def test_late_ones_skip_rounds(passed_over: set[tuple[int, int, int]]) -> None:
    graph = make_graph(GraphPart(kind="ring"), 5, 0)
    timing = Timing({(0, 1, 1): 4, (2, 1, 2): 5, (1, 0, 3): 5}, passed_over)
    laws = laws_with(graph, 0.2, 4, timing)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0)
    dice = Random(3)  # noqa: S311 - a simulation
    runs = 20_000
    for start in range(5):
        counts = np.zeros(5)
        for _ in range(runs):
            counts[walked(graph, 0.2, 4, timing, start, dice)] += 1
        assert np.all(np.abs(counts / runs - laws[start]) < 5.5 * np.sqrt(laws[start] / runs) + 1e-9)


def test_who_has_no_neighbour_keeps_its_report() -> None:
    assert laws_with(complete_graph(1), 0.0, 3, Timing()).tolist() == [[1.0]]


def test_a_quiet_run_is_in_time() -> None:
    run = quiet(RING)
    timing = timing_of(run.contents(), run.plan.plan.rounds)
    assert (timing.times, timing.late, timing.passed_over) == (0, {}, set())
    assert timing.most_on_edge >= 1


def test_somebody_who_was_away_was_late() -> None:
    """The others' rounds went on without it after their patience."""
    run = run_of(RING, Crash(2, at_record=14, down_s=4.5))
    timing = timing_of(run.contents(), run.plan.plan.rounds)
    assert 2 in {sender for sender, _, _ in timing.late}
    assert all(number + 1 < when <= 5 for (_, _, number), when in timing.late.items())
    assert 2 in {late for _, late, _ in timing.passed_over}
    assert timing.times == len(timing.late) + len(timing.passed_over)


def test_what_happened_fits_the_timing() -> None:
    """No report went to anybody who was passed over, and what came late went on when the timing says."""
    for seed in range(8):
        run = run_of(
            RING.replace("seed = 1", f"seed = {seed}").replace("rounds = 4", "rounds = 9"),
            Crash(2, at_record=20, down_s=4.5),
        )
        timing = timing_of(run.contents(), 9)
        assert timing.times
        for user, contents in run.contents().items():
            for record in contents.records if user >= 0 else ():
                if record.kind == SENT and record.body.receiver >= 0 and public_message(record).type == RELAY:
                    assert (user, record.body.receiver, public_message(record).fields[1]) not in timing.passed_over
