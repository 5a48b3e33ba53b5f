from __future__ import annotations

from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.messages import ACTIVATIONS
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from tests.support.gossip_specs import gossip
from tests.support.walk_world import SeededDraws


def planned(n: int, kind: str = "ring") -> RunPlan:
    return plan_run(parse_spec(gossip(n, kind, "activations = 40", "randomized"), None), n, 1)


def test_bootstrap_tells_each_user_its_own_activations() -> None:
    run = planned(6)
    told = {send.to: send.message for send in run.opening(SeededDraws(1))}
    assert sorted(told) == list(range(6))
    assert {message.type for message in told.values()} == {ACTIVATIONS}
    pairs = {(number, user, other) for user, message in told.items() for number, other in message.fields[2]}
    assert {number for number, _, _ in pairs} == set(range(1, 41))
    assert all((number, other, user) in pairs for number, user, other in pairs)
    assert run.graph is not None
    assert all(other in run.graph.neighbours[user] for _, user, other in pairs)


def test_a_single_user_is_told_that_it_meets_nobody() -> None:
    (send,) = planned(1, "complete").opening(SeededDraws(1))
    assert (send.to, send.message.fields) == (0, (0, 1, []))


def test_an_auditor_makes_the_same_plan_from_signed_facts() -> None:
    run = planned(6)
    assert plan_of_facts(run.spec, run.facts).plan == run.plan
