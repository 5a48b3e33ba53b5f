from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.factorized import (
    best_gram,
    encoder_of,
    gossip_gram,
    neighbour_means,
    prefix_gram,
    rows_of,
    sensitivity,
    told,
    told_following,
    total_error,
)
from p2pdp.topology.graphs import make_graph


def weights_of(kind: str, n: int) -> Any:
    return neighbour_means(make_graph(GraphPart(kind), n, 0))


def test_the_best_correlation_of_two_steps_is_known() -> None:
    """The least of (3 - 2x) / (1 - x^2) is where x^2 - 3x + 1 = 0."""
    found = best_gram(prefix_gram(2), 2)
    assert found == pytest.approx(np.array([[1.0, (3.0 - 5**0.5) / 2.0]] * 2)[:, ::1] * 0 + [
        [1.0, (3.0 - 5**0.5) / 2.0], [(3.0 - 5**0.5) / 2.0, 1.0]], abs=1e-4)  # fmt: skip


@pytest.mark.parametrize("period", [3, 6, 12])
def test_the_best_correlation_keeps_the_constraints_and_beats_others(period: int) -> None:
    weights, steps = weights_of("ring", 6), 12
    gram = gossip_gram(weights, steps)
    found = best_gram(gram, period)
    assert sensitivity(found, period) == pytest.approx(1.0)
    shared = np.arange(steps) % period
    assert found[(shared[:, None] == shared) & ~np.eye(steps, dtype=bool)] == pytest.approx(0.0)
    encoder = encoder_of(found)
    assert encoder.T @ encoder == pytest.approx(found, abs=1e-9)
    assert np.triu(encoder, 1) == pytest.approx(0.0)
    others = (np.eye(steps), best_gram(prefix_gram(steps), period))
    assert total_error(gram, found, period) <= min(total_error(gram, one, period) for one in others) * (1.0 + 1e-6)
    random = np.random.Generator(np.random.Philox(key=3))
    for _ in range(20):  # no small change within the constraints makes it better
        moved = random.standard_normal((steps, steps)) * 1e-3
        moved = moved + moved.T
        moved[(shared[:, None] == shared)] = 0.0
        assert total_error(gram, found + moved, period) >= total_error(gram, found, period) * (1.0 - 1e-4)


def test_the_gram_of_gossip_is_that_of_its_workload() -> None:
    weights, steps = weights_of("path", 3), 4
    whole = 0.0
    for user in range(3):
        columns = []
        for step in range(steps):
            states, after = np.zeros(3), []
            for later in range(steps):
                states = weights @ (states + (np.eye(3)[user] if later == step else 0.0))
                after.append(states)
            columns.append(np.concatenate(after))
        workload = np.array(columns).T
        whole = whole + workload.T @ workload
    assert gossip_gram(weights, steps) == pytest.approx(whole)


def test_on_a_path_a_pairwise_number_is_below_what_gradients_that_follow_the_models_tell() -> None:
    """The exact value again, by running two data sets and every source of noise through the steps themselves."""
    weights, curved = weights_of("path", 3), np.array([0.0, 1.5, 0.5])

    def seen(sources: Any) -> Any:
        models, view = np.zeros(3), []
        for step in range(2):
            models = models - (curved * models) + sources[step]
            view += [models[0], models[1], sources[step][0]]
            models = weights @ models
        return np.array(view)

    shift = np.zeros((2, 3))
    shift[:, 1] = 1.0
    noises = np.eye(6).reshape(6, 2, 3)
    spread = np.array([seen(one) for one in noises])
    mean = seen(shift)
    exact = mean @ np.linalg.pinv(spread.T @ spread) @ mean
    assert told_following(weights, 2, 0, 1, curved) == pytest.approx(exact, rel=1e-9)
    assert exact == pytest.approx(73.0 / 37.0)
    assert told(weights, 2, 0)[1] == pytest.approx(1.9)
    assert told_following(weights, 2, 0, 1, np.zeros(3)) <= told(weights, 2, 0)[1] + 1e-12


def test_nobody_is_told_more_than_local_noise_leaves_and_far_users_less() -> None:
    found = told(weights_of("ring", 8), 3, 0)
    assert np.isinf(found[0])
    assert found[1:].max() <= 3.0 + 1e-9
    assert found[4] < found[2]
    assert rows_of(weights_of("ring", 8), 3, 0).shape == (3 * 4, 24)
