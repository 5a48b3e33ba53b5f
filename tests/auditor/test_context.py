from __future__ import annotations

import math

import pytest

from p2pdp.auditor.context import AuditContext, graph_of, refused, sensitivity_of, unlike_plan
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph
from tests.support.gossips import context_of, gossip
from tests.support.runs import DELTA, HISTOGRAM, Run, quiet, ring, walk


def test_sensitivity_is_that_of_the_grid_or_of_a_count() -> None:
    run = quiet(ring(3, 1))
    context = AuditContext(run.plan, run.contents(), run.transcript(), (), DELTA, ())
    assert context.sensitivity == sensitivity_of(run.plan) >= math.ldexp(1.0, -run.plan.plan.grid_exponent)
    assert math.sqrt(2.0) < sensitivity_of(quiet(walk(4, 8, **HISTOGRAM)).plan) < 1.4142136


def test_claims_of_a_seeded_run_are_hypothetical_and_name_the_grid() -> None:
    run = quiet(ring(3, 1))
    first, second = AuditContext(run.plan, {}, run.transcript(), (), DELTA, ()).assumptions
    assert "treated as continuous" in first
    assert "hypothetical" in second


def test_a_user_is_at_hand_if_its_ledger_is_whole_and_there() -> None:
    run = quiet(ring(3, 1))
    context = AuditContext(run.plan, {}, run.transcript(), (1,), DELTA, ())
    assert [context.is_at_hand(user) for user in (0, 1, 2, 3)] == [True, False, True, False]


RUNS = (
    walk(4, 12),
    walk(4, 12, **HISTOGRAM),
    gossip(4, "ring"),
    gossip(4, "path", "rounds = 1\nmessage_sigma = 0.5"),
    gossip(4, "ring", "activations = 9", protocol="randomized"),
    gossip(4, "ring", noise='mechanism = "none"'),
)


@pytest.mark.parametrize("text", RUNS)
def test_runs_that_follow_their_plans_are_not_refused(text: str) -> None:
    assert unlike_plan(context_of(quiet(text))) is None


def changed(run: Run, user: int, factor: float) -> str | None:
    context = context_of(run)
    noise = context.transcript.noise[user]
    noise.own = [tuple(one._replace(scale=one.scale * factor) for one in recorded) for recorded in noise.own]
    return unlike_plan(context)


@pytest.mark.parametrize("text", RUNS[:5])
def test_the_user_whose_draws_are_others_is_named(text: str) -> None:
    reason = changed(quiet(text), 0, 0.5)
    assert reason is not None
    assert "user 0" in reason


def test_noise_on_messages_of_another_scale_is_seen() -> None:
    context = context_of(quiet(gossip(4, "ring", "rounds = 3\nmessage_sigma = 0.5")))
    (recorded,) = context.transcript.noise[1].others
    context.transcript.noise[1].others = {recorded._replace(scale=recorded.scale / 2)}
    reason = unlike_plan(context)
    assert reason is not None
    assert "user 1" in reason


def test_a_contribution_without_its_noise_is_seen() -> None:
    context = context_of(quiet(gossip(4, "ring")))
    context.transcript.noise[3].own = [()]
    assert unlike_plan(context) is not None


def test_one_reason_for_several_observers() -> None:
    found = refused(("node", "curator"), "exact", "why")
    assert [(one.observer, one.method, one.reason) for one in found.refusals] == [
        ("node", "exact", "why"),
        ("curator", "exact", "why"),
    ]


def test_the_graph_is_in_the_ledgers_of_all_users() -> None:
    run = quiet(gossip(5, "ring", "rounds = 2"))
    graph = graph_of(run.contents(), 5)
    assert graph is not None
    assert graph.neighbours == make_graph(GraphPart(kind="ring"), 5, 0).neighbours
    assert graph_of({peer: view for peer, view in run.contents().items() if peer != 2}, 5) is None
    whole = graph_of(quiet(gossip(3, "complete", "rounds = 2")).contents(), 3)
    assert whole is not None
    assert whole.edge_count == 3
