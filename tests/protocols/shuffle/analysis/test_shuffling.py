from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.audit.auditor import Audit
from p2pdp.core.claims import Claim
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import OPENED_REPORT, SEEN
from p2pdp.core.step import Message
from p2pdp.ledger.records import carries_message, public_message
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.protocols.run_plan import plan_run
from p2pdp.sim.faults import Crash
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
    assert "round 1" in refused(quiet(MIXED).audit(colluders=(3, 7)))["coalition", "shuffle with the curator"]


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
    from p2pdp.protocols.shuffle.analysis.shuffling import shuffle_account
    from tests.support.gossips import ground_of
    from tests.support.runs import ring

    assert shuffle_account(ground_of(quiet(ring(4, 1)))).claims == []


def test_without_the_curators_ledger_nothing_is_said_of_what_it_published() -> None:
    from p2pdp.protocols.shuffle.analysis.shuffling import shuffle_account
    from tests.support.gossips import ground_of

    run = quiet(EARLY)
    ground: Any = ground_of(run)
    views = {peer: view for peer, view in run.contents().items() if peer >= 0}
    found = shuffle_account(replace(ground, views=views))
    assert {refusal.observer for refusal in found.refusals} >= {"node", "public"}
    assert plan_run(run.evidence.spec, N, 1).plan.rounds == 6
