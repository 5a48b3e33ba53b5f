"""Models learned by gossip, whatever crashes, and tests from one view, which prove no more than is claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import truth_of
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.protocols.gossip.analysis.fast import matrices_of
from p2pdp.sim.faults import Crash
from p2pdp.tasks.examples import examples_of
from tests.support.fault_worlds import record_counts, world_of
from tests.support.gossip_learners import LOGISTIC, MEAN, gossip_learning
from tests.support.learners import prepared
from tests.support.likelihood import epsilon_lower_end, mu_interval
from tests.support.membership import gossip_views, scores
from tests.support.outcomes import outcome
from tests.support.run_oracle import evidence_of
from tests.support.runs import judged, quiet

ERROR = 1e-6 / 100
DELTA = 1e-2
RING, CHANGING = gossip_learning(4, "ring"), gossip_learning(4, "changing")
OWN_NOISE, SHARED_NOISE = "sigma = 0.8", "sigma = 0.8\npair_sigma = 2.4"
SHARED = RING.replace(OWN_NOISE, SHARED_NOISE)


def ended(text: str, *crashes: Crash, **network: Any) -> tuple[Any, Any]:
    """A world that came to its end with ledgers that are consistent, and what it came to."""
    world = world_of(text, 3, *crashes, **network)
    world.run_to_end()
    judged(evidence_of(world))
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    return world, outcome(world.run, views, world.out)


@pytest.mark.parametrize("text", [RING, CHANGING, SHARED], ids=["ring", "changing", "shared"])
def test_a_crash_at_every_seventh_record_changes_nothing(text: str) -> None:
    """Whoever is back before patience ends goes on where it was: every gradient is taken once, at the same models.

    Noise that was not drawn yet is another after a restart, so it is the models without noise that are compared.
    """
    rows = prepared(text)[1].user
    quiet_world, before = ended(text)
    expected = truth_of(quiet_world.run, before, rows)
    for peer, count in record_counts(text).items():
        for record in range(1, count + 1, 7):
            world, found = ended(text, Crash(peer, at_record=record, down_s=0.1))
            assert world.out == []
            assert len(found.finals) == 4
            assert truth_of(world.run, found, rows) == pytest.approx(expected, abs=1e-12)


def test_learning_goes_on_without_somebody_who_is_gone() -> None:
    alone = gossip_learning(5, "complete", patience_s=0.5)
    truths: dict[int, Any] = {}
    for text in (alone, alone.replace(OWN_NOISE, SHARED_NOISE)):
        for user in (1, 3):
            world, found = ended(text, Crash(user, at_s=0.014, down_s=None))
            assert world.out == [user]
            assert sorted(found.finals) == sorted(set(range(5)) - {user})
            truth = truth_of(world.run, found, prepared(text)[1].user)
            assert truth is None or np.isfinite(truth).all()
            assert (truth is None) == (truths.setdefault(user, truth) is None)


def test_everybody_down_and_back_on_a_bad_network() -> None:
    crashes = [Crash(peer, at_s=0.012, down_s=30.0) for peer in (BOOTSTRAP, CURATOR, 0, 1, 2, 3)]
    world, found = ended(CHANGING, *crashes, loss=0.1, duplication=0.1)
    assert world.out == []
    assert len(found.finals) == 4


def told_by(text: str, observer: int, target: int) -> tuple[Any, Any]:
    """Scores of replays with the target's rows the one way and the opposite way; others' as they are."""
    run, data = prepared(text)
    people = [[data.user(user) for user in range(run.n)] for _ in range(2)]
    rows, targets = len(people[0][target]), -np.ones(len(people[0][target]))
    for side, sign in zip(people, (1.0, -1.0), strict=True):
        features = np.tile(np.eye(len(side[target].features[0]))[0] * sign, (rows, 1))
        side[target] = examples_of(features, targets if "logistic" in text else targets * 0.0, None)
    matrices = list(matrices_of(run, 1))
    seen = [gossip_views(run.plan, one, matrices, observer, 4000, seed) for seed, one in enumerate(people)]
    return scores(*seen)


@pytest.mark.parametrize("target", [1, 2])
def test_no_membership_test_proves_more_than_the_ceiling(target: int) -> None:
    text = gossip_learning(4, "path", "rounds = 2", task=LOGISTIC, sigma=1.6)
    claim = quiet(text).audit(delta=DELTA).claims[0]
    assert claim.mu_max is not None
    assert claim.epsilon_max is not None
    without, with_ = told_by(text, 0, target)
    assert epsilon_lower_end(without, with_, DELTA, ERROR) <= claim.epsilon_max
    low, _ = mu_interval(without, with_, ERROR)
    assert low <= claim.mu_max
    assert low > 0.0, "the attack is not idle"


@pytest.mark.parametrize("target", [1, 2, 3])
def test_exact_leaks_are_what_the_best_test_finds(target: int) -> None:
    """Means of rows that lie opposite each other: twice the length apart at every step, and Gaussian noise."""
    text = gossip_learning(4, "path", "rounds = 2", task=MEAN, sigma=2.0)
    audit = quiet(text).audit(delta=DELTA)
    assert audit.mu is not None
    without, with_ = told_by(text, 0, target)
    low, high = mu_interval(without, with_, ERROR)
    assert low <= float(audit.mu[target, 0]) * (1.0 + 1e-9)
    assert high >= 0.9 * float(audit.mu[target, 0]), "and the test is nearly the best there is"
