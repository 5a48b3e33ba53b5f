"""One step of descent, the same on every peer: gradient, clip, grid, step, projection.

`Descent` is public and frozen: part of a plan. A contribution is the gradient over a user's rows (or over a batch of
them, cyclically), shortened to `clip`, and brought onto the grid on which noise is drawn: whatever lies between the
grid's steps would be seen beside the noise. The pull of regularization depends on the model only, not on data, so it
needs no noise and is taken with the step. Noise comes before projection [ABR23, Algorithm 4].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.values import snapped
from p2pdp.mechanisms.rounding import diagonal_upper
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Guarantees, Objective, shortened, why_not_contracting
from p2pdp.tasks.regression import MarginModel, limits


@dataclass(frozen=True)
class Descent:
    """`dimension` numbers make a model; it stays within `radius` of zero where that is given."""

    objective: Objective
    guarantees: Guarantees
    dimension: int
    clip: float
    grid_exponent: int
    regularization: float = 0.0
    radius: float | None = None
    batch: int | None = None

    @property
    def step(self) -> float:
        """Return the grid spacing in data units."""
        return math.ldexp(1.0, self.grid_exponent)

    @property
    def projects(self) -> bool:
        """Return whether the objective has a projection of its own."""
        return type(self.objective).project is not Objective.project

    @property
    def sensitivity(self) -> float:
        """Return how far (L2, in steps of the grid) replacing a user can move one contribution, rounded up.

        Twice the clip, and half a step for each number of both gradients, which go to the nearest.
        """
        length = Fraction(self.clip) * 2 * Fraction(1 + 2**-40) / Fraction(2) ** self.grid_exponent
        whole = diagonal_upper(Fraction(1), self.dimension)
        return math.nextafter(float(length) + whole, math.inf)

    def why_not_contracting(self, rate_max: float) -> str | None:
        return why_not_contracting(self.guarantees, self.clip, self.regularization, rate_max)

    def zero(self) -> Floats:
        return np.zeros(self.dimension)

    def moved(self, model: Floats, direction: Floats, rate: float) -> Floats:
        """Take one step against the direction, and back into what is allowed."""
        if self.regularization:
            direction = direction + self.regularization * model
        found = self.objective.project(model - rate * direction)
        if self.radius is not None:
            square = float(found @ found)
            if square > self.radius * self.radius:
                found = found * (self.radius / math.sqrt(square))
        return found

    def contribution(self, model: Floats, examples: Examples) -> Floats:
        """Return the gradient over these rows, clipped and on the grid."""
        found = self.objective.clipped_gradient(model, examples, self.clip)
        return np.asarray(snapped(shortened(np.asarray(found, dtype=np.float64), self.clip), self.step))


class GradientInputs:
    """A user's inputs to learning (`tasks/inputs.py`), with all that does not change between gradients made ready."""

    def __init__(self, descent: Descent, examples: Examples) -> None:
        self._descent = descent
        self._step = descent.step
        self._clip = descent.clip
        self._rows = len(examples)
        self._batches = [self._ready(examples, rows) for rows in batches(len(examples), descent.batch)]
        self.moved = descent.moved

    def zero(self) -> Floats:
        return self._descent.zero()

    def gradient(self, model: Floats, visit: int) -> Floats:
        """Return the contribution at visit number `visit`, counted from 0."""
        part, most, share = self._batches[visit % len(self._batches)]
        if most is None:
            return self._descent.contribution(model, part)
        objective: Any = self._descent.objective
        found = objective.clipped_with(model, part.features, part.targets, most, share)
        found = shortened(found, self._clip)
        found /= self._step  # a power of two, so nothing is rounded but to the nearest step
        np.rint(found, out=found)
        found *= self._step
        return np.asarray(found)

    def contribution(self, visit: int) -> Any:
        raise TypeError("a learner contributes gradients, which depend on the model")

    def allowed(self, model: Floats) -> Floats:
        """Return the nearest model at which the objective may be asked for a gradient."""
        return self._descent.objective.project(model)

    def report(self, visit: int, response: Any) -> Any:
        raise TypeError("gradients are noised, not answered at random")

    def _ready(self, examples: Examples, rows: Any) -> tuple[Examples, Any, float]:
        part = examples
        if rows is not None:
            part = examples_of(examples.features[rows], examples.targets[rows], examples.norm_max)
        most = limits(part.features, self._clip) if isinstance(self._descent.objective, MarginModel) else None
        return part, most, 1.0 / len(part)

    def __repr__(self) -> str:
        return f"GradientInputs({self._rows} examples)"


def batches(rows: int, size: int | None) -> list[Any]:
    """Return which rows each gradient is of, cyclically: all of them (None), or so many at a time."""
    if size is None or size >= rows:
        return [None]
    count = rows // math.gcd(rows, size)
    return [(number * size + np.arange(size)) % rows for number in range(count)]
