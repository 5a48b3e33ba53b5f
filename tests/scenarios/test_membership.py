"""Replays for membership tests; that they prove no more than is claimed is in `tests/scenarios/test_learning.py`."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.protocols.gossip.analysis.fast import matrices_of
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import learning, prepared
from tests.support.membership import gossip_views, scores, views

PATH = np.array([[0], [1], [2], [1], [0]])


def test_a_view_is_every_look_and_the_result() -> None:
    run, data = prepared(learning(3, 5))
    users = [data.user(user) for user in range(3)]
    told = [run.plan, users, PATH, np.zeros_like(PATH)]
    assert views(*told, 1, 7, 1).shape == (7, 3 * (2 + 2 + 1))
    assert views(*told, 2, 7, 1).shape == (7, 3 * 3)
    assert views(*told, None, 7, 1).shape == (7, 3)
    first = views(*told, 0, 7, 1)
    assert not first[:, :3].any(), "user 0 sees the empty model"
    assert first[:, -6:-3] == pytest.approx(first[:, -3:]), "and its own last step is the result"


def test_replays_differ_in_noise_only_and_by_seed() -> None:
    run, data = prepared(learning(3, 5))
    told = [run.plan, [data.user(user) for user in range(3)], PATH, np.zeros_like(PATH), 1]
    assert np.array_equal(views(*told, 5, 1), views(*told, 5, 1))
    assert not np.array_equal(views(*told, 5, 1), views(*told, 5, 2))
    quiet, data = prepared(learning(3, 5, sigma=None))
    assert np.ptp(views(quiet.plan, *told[1:], 5, 1), axis=0).max() == 0.0


def test_scores_separate_what_is_separate() -> None:
    generator = np.random.default_rng(1)
    without, with_ = generator.normal(size=(4000, 4)), generator.normal(size=(4000, 4)) + np.array([3.0, 0.0, 0.0, 0.0])
    low, high = scores(without, with_)
    assert len(low) == len(high) == 2000
    assert high.mean() - low.mean() > 2.5 * low.std()


def test_a_view_of_gossip_is_what_neighbours_sent_and_own_noise() -> None:
    run, data = prepared(gossip_learning(4, "path", "rounds = 2"))
    users = [data.user(user) for user in range(4)]
    matrices = list(matrices_of(run, 1))
    assert gossip_views(run.plan, users, matrices, 0, 7, 1).shape == (7, 3 * 3 + 6 * 3)
    assert gossip_views(run.plan, users, matrices, 1, 7, 1).shape == (7, 3 * 3 + 2 * 6 * 3)
    quiet, _ = prepared(gossip_learning(4, "path", "rounds = 2", sigma=None))
    seen = gossip_views(quiet.plan, users, matrices, 1, 5, 1)
    assert seen.shape == (5, 2 * 6 * 3)
    assert np.ptp(seen, axis=0).max() == 0.0
