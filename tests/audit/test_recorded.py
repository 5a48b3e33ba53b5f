from __future__ import annotations

import pytest

from p2pdp.audit.recorded import refused, unlike_plan
from tests.support.gossips import gossip, ground_of
from tests.support.runs import HISTOGRAM, Run, quiet, walk

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
    assert unlike_plan(ground_of(quiet(text))) is None


def changed(run: Run, user: int, factor: float) -> str | None:
    ground = ground_of(run)
    noise = ground.transcript.noise[user]
    noise.own = [tuple(one._replace(scale=one.scale * factor) for one in recorded) for recorded in noise.own]
    return unlike_plan(ground)


@pytest.mark.parametrize("text", RUNS[:5])
def test_the_user_whose_draws_are_others_is_named(text: str) -> None:
    reason = changed(quiet(text), 0, 0.5)
    assert reason is not None
    assert "user 0" in reason


def test_noise_on_messages_of_another_scale_is_seen() -> None:
    ground = ground_of(quiet(gossip(4, "ring", "rounds = 3\nmessage_sigma = 0.5")))
    (recorded,) = ground.transcript.noise[1].others
    ground.transcript.noise[1].others = {recorded._replace(scale=recorded.scale / 2)}
    reason = unlike_plan(ground)
    assert reason is not None
    assert "user 1" in reason


def test_a_contribution_without_its_noise_is_seen() -> None:
    ground = ground_of(quiet(gossip(4, "ring")))
    ground.transcript.noise[3].own = [()]
    assert unlike_plan(ground) is not None


def test_one_reason_for_several_observers() -> None:
    found = refused(("node", "curator"), "exact", "why")
    assert [(one.observer, one.method, one.reason) for one in found.refusals] == [
        ("node", "exact", "why"),
        ("curator", "exact", "why"),
    ]
