"""Small models whose gradients are clipped for each example, of many users at once: a network for numbers, and classes.

`clipped(models, features, targets, counts)` returns the sum over each user's rows of gradients no longer than 1: models
[user, number], features [user, row, column], of which a user has its first `counts`. Weights are one vector each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints

_TINY: Final = 1e-12


def _present(rows: int, counts: Ints) -> Floats:
    return (np.arange(rows) < counts[:, None]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Regressor:
    """One hidden layer of rectified units; the loss is the squared error."""

    columns: int
    hidden: int = 64

    @property
    def size(self) -> int:
        return (self.columns + 2) * self.hidden + 1

    def start(self, random: np.random.Generator) -> Floats:
        """Return weights drawn uniformly within one over the root of what comes in."""
        first, second = self.columns**-0.5, self.hidden**-0.5
        inside = random.uniform(-first, first, (self.columns + 1) * self.hidden)
        return np.concatenate([inside, random.uniform(-second, second, self.hidden + 1)])

    def _parts(self, models: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        columns, hidden = self.columns, self.hidden
        edge = columns * hidden
        inward = models[:, :edge].reshape(-1, columns, hidden)
        return inward, models[:, edge : edge + hidden], models[:, edge + hidden : -1], models[:, -1]

    def _forward(self, models: Floats, features: Floats) -> tuple[Floats, Floats]:
        inward, offset, outward, bias = self._parts(models)
        units = np.maximum(features @ inward + offset[:, None, :], 0.0)
        return units, (units @ outward[:, :, None])[:, :, 0] + bias[:, None]

    def clipped(self, models: Floats, features: Floats, targets: Floats, counts: Ints) -> Floats:
        units, told = self._forward(models, features)
        outward = self._parts(models)[2]
        slopes = 2.0 * (told - targets)
        active = (units > 0.0) * outward[:, None, :]
        square = (active**2).sum(axis=2) * ((features**2).sum(axis=2) + 1.0) + (units**2).sum(axis=2) + 1.0
        shares = np.minimum(1.0, 1.0 / np.maximum(np.abs(slopes) * np.sqrt(square), _TINY))
        slopes = slopes * shares * _present(features.shape[1], counts)
        inner = slopes[:, :, None] * active
        return np.concatenate(
            [
                (features.swapaxes(1, 2) @ inner).reshape(len(models), -1),
                inner.sum(axis=1),
                (slopes[:, None, :] @ units)[:, 0],
                slopes.sum(axis=1)[:, None],
            ],
            axis=1,
        )

    def measure(self, models: Floats, features: Floats, targets: Floats) -> float:
        """Return the mean of the models' squared errors."""
        _, told = self._forward(models, np.broadcast_to(features, (len(models), *features.shape)))
        return float(((told - targets) ** 2).mean())


@dataclass(frozen=True, slots=True)
class Classifier:
    """A linear model of each class; the loss is that of their softmax, and targets are the classes' numbers."""

    columns: int
    classes: int

    @property
    def size(self) -> int:
        return (self.columns + 1) * self.classes

    def start(self, random: np.random.Generator) -> Floats:
        return np.zeros(self.size)

    def _shares(self, models: Floats, features: Floats) -> Floats:
        edge = self.columns * self.classes
        told = features @ models[:, :edge].reshape(-1, self.columns, self.classes) + models[:, None, edge:]
        told = np.exp(told - told.max(axis=2, keepdims=True))
        return np.asarray(told / told.sum(axis=2, keepdims=True))

    def clipped(self, models: Floats, features: Floats, targets: Floats, counts: Ints) -> Floats:
        off = self._shares(models, features) - np.eye(self.classes)[targets.astype(np.int64)]
        lengths = np.sqrt((off**2).sum(axis=2) * ((features**2).sum(axis=2) + 1.0))
        off *= (np.minimum(1.0, 1.0 / np.maximum(lengths, _TINY)) * _present(features.shape[1], counts))[:, :, None]
        return np.concatenate([(features.swapaxes(1, 2) @ off).reshape(len(models), -1), off.sum(axis=1)], axis=1)

    def measure(self, models: Floats, features: Floats, targets: Floats) -> float:
        """Return the mean of the models' accuracies."""
        shares = self._shares(models, np.broadcast_to(features, (len(models), *features.shape)))
        return float((shares.argmax(axis=2) == targets).mean())


Net = Regressor | Classifier


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows dealt to users and batches, [user, batch, row, column], and rows for a test."""

    features: Floats
    targets: Floats
    counts: Ints  # [user, batch]
    test_features: Floats
    test_targets: Floats


def dealt(features: Floats, targets: Floats, users: int, batches: int, random: np.random.Generator) -> Dealt:
    """Keep a fifth of the rows for the test, and deal the others to users and their batches evenly, at random."""
    order = random.permutation(len(features))
    kept, own = np.split(order, [len(order) // 5])
    parts = [np.array_split(own[user::users], batches) for user in range(users)]
    most = max(len(batch) for part in parts for batch in part)
    table = np.zeros((users, batches, most, features.shape[1]))
    answers, counts = np.zeros((users, batches, most)), np.zeros((users, batches), dtype=np.int64)
    for user, part in enumerate(parts):
        for number, rows in enumerate(part):
            table[user, number, : len(rows)] = features[rows]
            answers[user, number, : len(rows)] = targets[rows]
            counts[user, number] = len(rows)
    return Dealt(table, answers, counts, features[kept], targets[kept])
