from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.experiments.nets import Classifier, Net, Regressor, dealt


def one_by_one(net: Net, model: Any, features: Any, targets: Any) -> Any:
    """Clipped gradients by finite differences of each example's loss."""
    found = np.zeros(net.size)
    for row, target in zip(features, targets, strict=True):
        gradient = np.array([
            (loss(net, model + 1e-6 * unit, row, target) - loss(net, model - 1e-6 * unit, row, target)) / 2e-6
            for unit in np.eye(net.size)
        ])  # fmt: skip
        found += gradient / max(1.0, float(np.linalg.norm(gradient)))
    return found


def loss(net: Net, model: Any, row: Any, target: float) -> float:
    if isinstance(net, Regressor):
        return net.measure(model[None], row[None], np.array([target]))
    return float(-np.log(net._shares(model[None], row[None, None])[0, 0, int(target)]))


@pytest.mark.parametrize("net", [Regressor(3, 4), Classifier(3, 3)])
def test_gradients_are_clipped_one_by_one_and_rows_that_fill_up_count_for_nothing(net: Net) -> None:
    random = np.random.Generator(np.random.Philox(key=7))
    models = random.standard_normal((2, net.size))
    features, targets = random.standard_normal((2, 5, 3)), random.integers(0, 3, (2, 5)).astype(float)
    counts = np.array([5, 2])
    found = net.clipped(models, features, targets, counts)
    for user, count in enumerate(counts):
        expected = one_by_one(net, models[user], features[user, :count], targets[user, :count])
        assert found[user] == pytest.approx(expected, abs=1e-5)
    assert net.start(random).shape == (net.size,)


def test_every_row_is_dealt_once() -> None:
    random = np.random.Generator(np.random.Philox(key=1))
    rows = dealt(np.arange(103.0)[:, None], np.arange(103.0), 4, 5, random)
    held = [rows.features[user, batch, : rows.counts[user, batch], 0] for user in range(4) for batch in range(5)]
    assert sorted(np.concatenate([*held, rows.test_targets]).tolist()) == list(range(103))
    assert rows.counts.max() - rows.counts.min() <= 1
