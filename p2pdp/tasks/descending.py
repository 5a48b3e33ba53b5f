"""Many descents side by side, for all trials at once, as machines do them one step at a time.

Guarantee: with the same users at the same steps and the same noise a descent comes to the model that the machines of
`walk.sgd` come to, but for the rounding of sums and the dithers of models. One in ten million contributions may so land
on the next step of the grid, which is less than a millionth of the noise.

Lanes are descents that know nothing of each other: trials, tokens, or levels of noise. An objective of the caller's
own, and users with very unequal numbers of rows, are taken lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.tasks.descent import Descent, GradientInputs
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.objectives import Objective
from p2pdp.tasks.regression import MarginModel, MeanEstimation, limits

Noise = Callable[[int], Floats | None]  # of a step, counted from 1: [lane, number] in data units; None for none

Watch = Callable[[int, Floats, Floats], None]

_PADDED_MAX: Final = 1 << 26  # numbers in the table of all users' rows


class Population:
    """The examples of all users, ready for any number of lanes."""

    def __init__(self, descent: Descent, users: Sequence[Examples]) -> None:
        self._descent = descent
        most = max(len(examples) for examples in users)
        objective = descent.objective
        fits = len(users) * most * descent.dimension <= _PADDED_MAX
        self._users = users
        self._table: _Table | None = None
        self._inputs: dict[int, GradientInputs] = {}
        if fits and not descent.samples and isinstance(objective, MarginModel | MeanEstimation):
            self._table = _Table(descent, users, most)

    def descend(
        self, path: Ints, visits: Ints, rates: Sequence[float], noise: Noise, watch: Watch | None = None
    ) -> Floats:
        """Return the model of each lane: `path[step, lane]` contributes, having done so `visits[step, lane]` times.

        `watch` is told of each step the models before and after it.
        """
        models = np.tile(self._descent.start(), (path.shape[1], 1))
        for step, rate in enumerate(rates):
            direction = self.contributions(models, path[step], visits[step])
            added = noise(step + 1)
            if added is not None:
                direction = direction + added
            before, models = models, self._moved(models, direction, rate)
            if watch is not None:
                watch(step + 1, before, models)
        return models

    def contributions(self, models: Floats, who: Ints, visits: Ints) -> Floats:
        """Return the clipped gradient of `who[lane]` at each lane's model, having contributed `visits[lane]` times."""
        if self._table is not None:
            return self._table.contributions(models, who, visits)
        return np.array(
            [
                self._of(user).gradient(model, visit)
                for model, user, visit in zip(models, who.tolist(), visits.tolist(), strict=True)
            ]
        )

    def _of(self, user: int) -> GradientInputs:
        if user not in self._inputs:
            self._inputs[user] = GradientInputs(self._descent, self._users[user])
        return self._inputs[user]

    def _moved(self, models: Floats, direction: Floats, rate: float) -> Floats:
        descent = self._descent
        if type(descent.objective).project is not Objective.project:
            return np.array([descent.moved(model, one, rate) for model, one in zip(models, direction, strict=True)])
        if descent.regularization:
            direction = direction + descent.regularization * models
        moved = models - rate * direction
        if descent.radius is not None:
            lengths = np.sqrt((moved * moved).sum(axis=1))
            outside = lengths > descent.radius
            if outside.any():
                moved[outside] *= (descent.radius / lengths[outside])[:, None]
        return moved


class _Table:
    """All users' rows in one array, filled up with rows of zeros that count for nothing."""

    def __init__(self, descent: Descent, users: Sequence[Examples], most: int) -> None:
        self._objective: Any = descent.objective
        self._clip, self._step, self._batch = descent.clip, descent.step, descent.batch
        self._features = np.zeros((len(users), most, users[0].features.shape[1]))
        self._targets = np.zeros((len(users), most))
        self._rows = np.array([len(examples) for examples in users])
        for user, examples in enumerate(users):
            self._features[user, : len(examples)] = examples.features
            self._targets[user, : len(examples)] = examples.targets
        taken = self._rows if descent.batch is None else np.minimum(self._rows, descent.batch)
        self._shares = 1.0 / taken
        self._full = (np.arange(most) < self._rows[:, None]).astype(np.float64)
        self._most = limits(self._features, descent.clip) if isinstance(self._objective, MarginModel) else self._full

    def contributions(self, models: Floats, who: Ints, visits: Ints) -> Floats:
        picked: Any = who
        if self._batch is not None and self._batch < self._features.shape[1]:
            rows, taken = self._rows[who], np.arange(self._batch)
            places = (visits[:, None] * self._batch + taken) % rows[:, None]
            places = np.where(rows[:, None] > self._batch, places, np.minimum(taken, self._features.shape[1] - 1))
            picked = (who[:, None], places)
        features = self._features[picked]
        if isinstance(self._objective, MarginModel):
            slopes = self._objective.slopes(np.matmul(features, models[:, :, None])[:, :, 0], self._targets[picked])
            most = self._most[picked]
            np.minimum(slopes, most, out=slopes)
            np.maximum(slopes, -most, out=slopes)
            slopes *= self._shares[who][:, None]
            found = np.matmul(slopes[:, None, :], features)[:, 0, :]
        else:
            away = models[:, None, :] - features
            lengths = np.sqrt((away * away).sum(axis=2))
            shorter = np.minimum(1.0, self._clip / np.maximum(lengths, 1e-300)) * self._full[picked]
            found = np.matmul((shorter * self._shares[who][:, None])[:, None, :], away)[:, 0, :]
        squares = (found * found).sum(axis=1)
        longer = squares > self._clip**2
        if longer.any():
            found[longer] *= (self._clip / np.sqrt(squares[longer]))[:, None]
        found /= self._step
        np.rint(found, out=found)
        found *= self._step
        return np.asarray(found)


def visits_along(path: Ints) -> Ints:
    """Return how often each holder had contributed before, to any of a run's tokens, which go on side by side."""
    flat = path.reshape(-1)
    order = np.argsort(flat, kind="stable")
    sorted_users = flat[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_users[1:] != sorted_users[:-1]]))
    since = np.arange(len(flat)) - np.repeat(begins, np.diff(np.append(begins, len(flat))))
    visits = np.empty_like(flat)
    visits[order] = since
    return visits.reshape(path.shape)
