"""Models learned by walks, whatever crashes: each step is taken once, with the noise that its user recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.sim.faults import Crash
from p2pdp.tasks.examples import examples_of
from tests.support.fault_worlds import chance, completes, record_counts, world_of
from tests.support.learners import learning, prepared
from tests.support.likelihood import epsilon_lower_end, mu_interval
from tests.support.membership import scores, views
from tests.support.runs import quiet
from tests.support.token_paths import paths

COMPLETE, SPARSE = learning(4, 10), learning(5, 10, kind="path")
TOKENS = learning(4, 6, tokens=3, task='kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nbatch = 3')
ERROR = 1e-6 / 100


@pytest.mark.parametrize("text", [COMPLETE, SPARSE, TOKENS], ids=["complete", "path", "tokens"])
def test_a_crash_at_every_second_record_changes_nothing(text: str) -> None:
    for peer, count in record_counts(text).items():
        for record in range(1, count + 1, 2):
            world = world_of(text, 1, Crash(peer, at_record=record, torn_bytes=record % 3 * 20 or None))
            assert completes(world).verification.verified == "complete"
            assert world.out == []


@pytest.mark.parametrize("seed", range(20))
def test_two_crashes_on_a_bad_network(seed: int) -> None:
    dice = chance(seed)
    text = dice.choice((COMPLETE, SPARSE, TOKENS))
    counts = record_counts(text)
    crashes = [Crash(peer, at_record=dice.randint(1, counts[peer] + 4)) for peer in dice.choices(sorted(counts), k=2)]
    completes(world_of(text, seed, *crashes, loss=0.1, duplication=0.1, jitter_s=0.02))


@pytest.mark.parametrize("user", [1, 2, 3])
def test_the_walk_goes_round_a_user_who_is_gone(user: int) -> None:
    counts = record_counts(COMPLETE)
    for record in range(3, counts[user], 4):
        world = world_of(COMPLETE, 1, Crash(user, at_record=record, down_s=None))
        judged = completes(world)
        assert world.out in ([], [user])
        assert len(judged.path[0]) == 10


def test_everybody_down_and_back() -> None:
    crashes = [Crash(peer, at_s=0.012, down_s=30.0) for peer in (BOOTSTRAP, CURATOR, 0, 1, 2, 3)]
    world = world_of(COMPLETE, 1, *crashes)
    completes(world)
    assert world.out == []


def opposite(examples: Any, reach: float) -> Any:
    """Rows and classes that pull as far to the other side as the bounds allow."""
    rows = np.tile([reach, -reach, 1.0], (len(examples), 1))
    return examples_of(rows, -np.ones(len(examples)), None)


@pytest.mark.parametrize("unit", ["user", "record"])
@pytest.mark.parametrize("observer", [0, 2, None], ids=["user 0", "user 2", "everybody"])
def test_no_membership_test_proves_more_than_was_claimed(observer: int | None, unit: str) -> None:
    """On the realised path, with a user's examples, or one of 15, one way and the opposite way; others as they are."""
    delta, target = 1e-2, 1
    replaced = 15 if unit == "user" else 1
    run = quiet(learning(4, 24, sigma=1.6 * replaced / 15) + f'unit = "{unit}"\n')
    plan, path = run.plan.plan, paths(run).T
    audit = run.audit(delta=delta)
    rows = prepared(learning(4, 24))[1].user
    visits = np.zeros_like(path)
    users = [[rows(user) for user in range(4)] for _ in range(2)]
    turned = np.where(np.arange(15) < replaced, -1.0, 1.0)[:, None]
    users[1][target] = opposite(rows(target), 1.0)
    users[0][target] = examples_of(users[1][target].features * turned, -np.ones(15), None)
    seen = [views(plan, people, path, visits, observer, 6000, seed) for seed, people in enumerate(users)]
    without, with_ = scores(*seen)
    if observer is None:
        claim = next(one for one in audit.claims if one.observer == "public")
        assert claim.epsilon_max is not None
        claimed, mu = claim.epsilon_max, claim.mu_max
    else:
        assert audit.epsilon is not None
        assert audit.mu is not None
        claimed, mu = float(audit.epsilon[target, observer]), float(audit.mu[target, observer])
    assert mu is not None
    assert epsilon_lower_end(without, with_, delta, ERROR) <= claimed
    low, _ = mu_interval(without, with_, ERROR)
    assert low <= mu * (1 + 1e-9)
    assert low > 0.15 * mu, "the attack is not idle"
