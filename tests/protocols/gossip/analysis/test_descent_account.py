"""Claims about learning by gossip: the ceiling first, the model marked, exact where gradients are affine."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit
from p2pdp.auditor.context import sensitivity_of
from p2pdp.core.claims import Claim
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.descent import told, worst
from p2pdp.protocols.gossip.analysis import descent_account as account
from p2pdp.protocols.gossip.analysis.a_priori import hidden_graph_account
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.descent_account import (
    FIXED_BEFOREHAND,
    MODEL,
    gossip_descent_account,
    printed_leaks,
)
from p2pdp.protocols.gossip.analysis.descent_views import course_of
from p2pdp.sim.faults import Crash
from p2pdp.topology.graphs import graph_of_edges
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_learners import LINEAR, LOGISTIC, MEAN, gossip_learning
from tests.support.gossips import context_of, gossip
from tests.support.runs import DELTA, Run, quiet, run_of

PATH = gossip_learning(4, "path", "rounds = 1")
MEANS = gossip_learning(4, "path", "rounds = 1", task=MEAN, sigma=4.0)


def claim_of(audit: Audit, observer: str, method: str) -> Claim:
    (found,) = [one for one in audit.claims if (one.observer, one.method) == (observer, method)]
    return found


@pytest.mark.parametrize("kind", ["path", "complete", "changing"])
@pytest.mark.parametrize("task", [LOGISTIC, LINEAR])
def test_the_headline_is_composition_over_the_gradients(kind: str, task: str) -> None:
    """mu^2 = T Delta^2 / sigma^2, Delta twice the clip; what a model says is never among the pairs."""
    run = quiet(gossip_learning(4, kind, task=task))
    audit = run.audit()
    clip, count = (1.0, 3) if task == LOGISTIC else (0.7, 4)
    first = audit.claims[0]
    assert (first.observer, first.method, first.bound) == ("network", "local", True)
    assert first.mu_max == pytest.approx(math.sqrt(count) * 2.0 * clip / 0.8, rel=1e-6)
    model = claim_of(audit, "node", MODEL)
    assert not model.bound
    assert FIXED_BEFOREHAND in model.assumptions
    assert model.mu_max is not None
    assert model.mu_max <= first.mu_max * (1.0 + 1e-9)
    assert audit.epsilon is None or np.isnan(audit.epsilon).all()
    assert audit.mu is None
    assert any(one.method == "exact" and "no linear account" in one.reason for one in audit.refusals)
    assert {one.method for one in audit.claims if one.bound} == {"local", "exact"}
    assert {one.observer for one in audit.claims if one.method == "exact"} == {"curator", "public"}


def test_neighbours_are_told_all_and_others_less() -> None:
    """On a path with one round a block a neighbour's gradients are seen bare but for what was known before."""
    run = quiet(PATH)
    model = claim_of(run.audit(), "node", MODEL)
    first = run.audit().claims[0]
    assert model.mu_max == pytest.approx(first.mu_max, rel=1e-9)
    assert model.mu_mean is not None
    assert first.mu_max is not None
    assert 0.2 * first.mu_max < model.mu_mean < 0.8 * first.mu_max


def test_accounts_of_averages_say_nothing_about_learning() -> None:
    for kind in ("path", "changing"):
        ground = context_of(quiet(gossip_learning(4, kind)))
        assert gossip_account(ground).claims == []
        assert hidden_graph_account(ground).claims == []
        assert gossip_account(ground).refusals == hidden_graph_account(ground).refusals == []
    methods = {claim.method for claim in quiet(gossip_learning(4, "changing")).audit().claims}
    assert methods == {"local", MODEL, "published:theorem-11", "published:proposition-1", "exact"}
    assert gossip_descent_account(context_of(quiet(gossip(4, "ring")))).claims == []


def test_affine_gradients_are_exact() -> None:
    """Users' means move by twice the length of a row, and what was learned of the far end is told late and mixed."""
    run = quiet(MEANS)
    audit = run.audit()
    exact = claim_of(audit, "node", "exact")
    assert exact.bound
    assert exact.mu_max is not None
    assert 0.0 < exact.mu_max <= math.sqrt(4) * 2.0 / 4.0 * (1.0 + 1e-6)
    assert audit.mu is not None
    assert audit.leak is not None
    assert audit.mu[3, 0] < audit.mu[2, 0] < audit.mu[1, 0]
    assert audit.epsilon is not None
    assert gaussian.epsilon_of(DELTA, float(audit.mu[3, 0])) <= audit.epsilon[3, 0]
    assert not [one for one in audit.claims if one.method == MODEL]


UNIT_BOX = gossip_learning(3, "path", "rounds = 1", task=MEAN, sigma=4.0)
UNIT_BOX = UNIT_BOX[: UNIT_BOX.index("[data]")] + (
    '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
    f"[task]\n{MEAN.replace('120.0', '100.0').replace('rounds = 4', 'rounds = 3')}\n[privacy]\ndelta = 1e-5\n"
)


def test_in_a_box_a_user_moves_by_the_width_of_the_box() -> None:
    """Against the recursion on a path of three, written out: states are rows over values and fresh noise."""
    audit = quiet(UNIT_BOX).audit()
    assert audit.mu is not None
    weights = np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3.0
    count, rate, sigma = 3, 0.2, 4.0
    for observer in range(3):
        states, heard = np.zeros((3, 3 + 3 * count)), []
        for number in range(count):
            gradient = states.copy()  # a row for each user, over all values and all draws
            gradient[:, :3] -= np.eye(3)
            gradient[np.arange(3), 3 + 3 * number + np.arange(3)] += sigma
            states = states - rate * gradient
            heard += [states[user] for user in range(3) if abs(user - observer) == 1]
            states = weights @ states
        rows = np.array(heard)
        unknown = np.delete(rows[:, 3:], 3 * np.arange(count) + observer, axis=1)
        for user in {0, 1, 2} - {observer}:
            a = rows[:, user]
            squared = a @ np.linalg.pinv(unknown @ unknown.T, rcond=1e-12) @ a
            assert audit.mu[user, observer] == pytest.approx(math.sqrt(squared), rel=1e-6)
    largest = claim_of(audit, "node", "exact").mu_max
    assert largest == pytest.approx(math.sqrt(3) / 4.0, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (gossip_learning(4, "path", task=MEAN.replace("120.0", "2.5"), sigma=4.0), "may be clipped"),
        (MEANS.replace("sigma = 4.0", "sigma = 400.0"), "may be clipped"),
        (gossip_learning(4, "path", 'rounds = 1\npublish = "one"', task=MEAN, sigma=4.0), "results published"),
        (gossip_learning(4, "path", task=MEAN, sigma=None), "without noise"),
    ],
)
def test_affine_gradients_that_are_not(text: str, why: str) -> None:
    audit = quiet(text).audit()
    assert any(one.method == "exact" and why in one.reason for one in audit.refusals)
    assert not [one for one in audit.claims if one.bound and one.observer == "node"]


def test_coalitions_know_more() -> None:
    run = quiet(MEANS)
    alone, together = run.audit(), run.audit([0, 3])
    assert together.mu_coalition is not None
    assert alone.mu is not None
    assert np.nanmin(together.mu_coalition[1:3] - alone.mu[1:3, 0]) >= -1e-9
    assert claim_of(together, "coalition", "exact").bound
    assert together.epsilon_coalition is not None
    assert np.nanmax(together.epsilon_coalition) == claim_of(together, "coalition", "exact").epsilon_max
    model = quiet(PATH).audit([1, 3])
    assert not claim_of(model, "coalition", MODEL).bound


def test_noise_on_messages_lowers_what_the_model_says() -> None:
    quieter = quiet(PATH.replace("rounds = 1\n[noise]", "rounds = 1\nmessage_sigma = 0.8\n[noise]"))
    with_, without = (claim_of(run.audit(), "node", MODEL).mu_mean for run in (quieter, quiet(PATH)))
    assert with_ is not None
    assert without is not None
    assert with_ < 0.9 * without


def test_runs_with_late_users_are_written_out() -> None:
    run = run_of(gossip_learning(4, "ring", patience_s=0.5), Crash(3, at_s=0.012, down_s=3.0))
    audit = run.audit()
    assert claim_of(audit, "node", MODEL).mu_max is not None
    assert not [one for one in audit.claims if one.method.startswith("published")]


def test_large_runs_look_at_some_observers_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Run = quiet(MEANS)
    views = account.DescentViews(context_of(run))
    monkeypatch.setattr(account, "_WORK_MAX", views.work * 2.5)
    audit = run.audit()
    assert any("2 of the 4 users" in said for said in claim_of(audit, "node", MODEL).assumptions)
    assert audit.mu is None
    monkeypatch.setattr(account, "_WORK_MAX", views.work / 2)
    assert any("takes too long" in one.reason for one in run.audit().refusals)


def test_sensitivity_is_that_of_a_clipped_gradient() -> None:
    run = quiet(PATH).plan
    assert math.ldexp(sensitivity_of(run), run.plan.grid_exponent) == pytest.approx(2.0)


def test_a_rank_that_rounding_leaves_open_is_no_exact_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_APART", 1e20)
    audit = quiet(gossip_learning(4, "changing", task=MEAN, sigma=4.0)).audit()
    told = [one for one in audit.refusals if "rounding" in one.reason]
    assert told or claim_of(audit, "node", "exact").bound


def test_with_one_round_a_block_nothing_is_printed_for_strangers() -> None:
    """[CEBM22, Theorem 6] is no bound.

    The far end of a path: its gradients come with the neighbour's state of the next block, all the same.
    """
    plan = quiet(gossip_learning(3, "path", "rounds = 1")).plan.plan
    matrices = [sparse_weights(graph_of_edges(3, [(0, 1), (1, 2)]), "metropolis")] * plan.rounds
    printed = printed_leaks(plan, matrices, [[0], [2]])
    assert printed[:, 0].tolist() == [0.0, 3.0, 0.0]
    leak = worst(told(course_of(plan, matrices, 0.0), [0]).grams)
    assert leak[2] > 0.1 > printed[2, 0]


def test_equation_8_is_t_times_that_of_averaging() -> None:
    """[CEBM22, Theorem 6], K = 2: y_w, then all of w's neighbourhood in thirds."""
    plan = quiet(gossip_learning(3, "path", "rounds = 2")).plan.plan
    weights = sparse_weights(graph_of_edges(3, [(0, 1), (1, 2)]), "metropolis")
    assert printed_leaks(plan, [weights] * 6, [[0]])[:, 0] == pytest.approx([1.0, 3.0 * (1.0 + 1 / 3), 1.0])
    again = printed_leaks(plan, [weights.copy() for _ in range(6)], [[0]])
    np.testing.assert_allclose(again, printed_leaks(plan, [weights] * 6, [[0]]))


def test_violated_pairs_are_counted_where_the_leak_is_exact() -> None:
    audit = quiet(gossip_learning(5, "path", "rounds = 1", task=MEAN, sigma=4.0)).audit()
    (claim,) = [one for one in audit.claims if one.method == "published:theorem-6"]
    assert not claim.bound
    assert claim.violated_pairs == 12, "all pairs that are no neighbours"
    assert audit.published is not None
    assert audit.published[4, 0] == 0.0
    model = quiet(gossip_learning(5, "changing")).audit()
    assert {one.method: one.violated_pairs for one in model.claims if one.method.startswith("published")} == {
        "published:theorem-11": None,
        "published:proposition-1": None,
    }


def test_colluders_are_one_node() -> None:
    plan = quiet(gossip_learning(4, "path", "rounds = 1")).plan.plan
    weights = sparse_weights(graph_of_edges(4, [(0, 1), (1, 2), (2, 3)]), "metropolis")
    assert printed_leaks(plan, [weights] * 3, [[0, 1]])[2:, 0].tolist() == [3.0, 0.0]


def test_on_changing_graphs_blocks_add_up() -> None:
    """[CEBM22, Theorem 11]: what each neighbour of a round sends, by dense matrices, with another graph each round."""
    plan = quiet(gossip_learning(4, "path", "rounds = 2")).plan.plan
    graphs = ([(0, 1), (2, 3)], [(0, 1), (1, 2)], [(1, 3)], [(0, 1), (0, 2), (2, 3)])
    matrices = [sparse_weights(graph_of_edges(4, graphs[at % 4]), "metropolis") for at in range(2 * plan.gradients)]
    expected = np.zeros(4)
    for block in range(plan.gradients):
        states = np.eye(4)
        for matrix in matrices[2 * block : 2 * block + 2]:
            dense = matrix.toarray()
            for neighbour in (peer for peer in range(1, 4) if dense[0, peer] > 0.0):
                expected += states[neighbour] ** 2 / float(states[neighbour] @ states[neighbour])
            states = dense @ states
    np.testing.assert_allclose(printed_leaks(plan, matrices, [[0]])[1:, 0], expected[1:], atol=1e-12)
    assert len(set(expected[1:].tolist())) == 3
