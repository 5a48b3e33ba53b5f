"""One step of descent, the same on every peer: gradient, clip, grid, step, projection.

`Descent` is public and frozen: part of a plan. A contribution is the gradient over a user's rows (or over a batch of
them, cyclically), shortened to `clip`, and brought onto the grid on which noise is drawn: whatever lies between the
grid's steps would be seen beside the noise. Where single records are protected, it is the sum of the rows' own
gradients, each shortened to `clip`, divided by a public number: by how many rows the user has, or by the expected size
of a minibatch, which every row enters with the same chance (`mechanisms/rows.py`). The pull of regularization depends
on the model only, not on data, so it needs no noise and is taken with the step. Noise comes before projection [ABR23,
Algorithm 4].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.values import snapped
from p2pdp.mechanisms import rows as minibatches
from p2pdp.mechanisms.rounding import diagonal_upper
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import (
    Guarantees,
    Objective,
    clipped_sum,
    shortened,
    start_digest,
    start_of,
    why_not_contracting,
)
from p2pdp.tasks.regression import MarginModel, limits


@dataclass(frozen=True)
class RowCounts:
    """The public facts about users' rows where each of them is protected.

    Contributions are divided by `least` or more, are over `most` rows or fewer, and `fewest` is how many rows the user
    has who has fewest.
    """

    least: int
    most: int
    fewest: int


@dataclass(frozen=True)
class Descent:
    """`dimension` numbers make a model; it stays within `radius` of zero where that is given.

    `batch` is the number of rows of a gradient, or where there are `records` the expected number. `start_digest` is the
    signed digest of where models start: None for zeros, empty where nothing is signed yet. `start_max` is the largest
    number of the start.
    """

    objective: Objective
    guarantees: Guarantees
    dimension: int
    clip: float
    grid_exponent: int
    regularization: float = 0.0
    radius: float | None = None
    batch: int | None = None
    records: RowCounts | None = None
    start_digest: str | None = None
    start_max: float = 0.0

    @property
    def samples(self) -> bool:
        """Return whether users draw which rows a gradient is over."""
        return self.records is not None and self.batch is not None

    def share(self, rows: int) -> float:
        """Return the chance with which each of a user's rows enters a gradient."""
        return min(1.0, self.batch / rows) if self.samples and self.batch is not None else 1.0

    def drawn(self, rows: int) -> tuple[Mechanism, Shape] | None:
        """Return the draw that chooses among a user's rows; None where all of them count."""
        share = self.share(rows)
        return minibatches.mechanism_of(share, rows) if share < 1.0 else None

    @property
    def reach(self) -> float:
        """Return a length that no contribution exceeds, but for a chance that counts for nothing."""
        if self.records is None or self.batch is None:
            return self.clip
        return self.clip * self.records.most / self.batch

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
        """Return how far (L2, in steps of the grid) replacing what is protected can move a contribution, rounded up.

        Twice the clip, divided like the contribution, and half a step for each number of both gradients, which go to
        the nearest. A sum of k floats in any order is off by (k - 1) 2^-53 of the sum of their sizes at most.
        """
        return self._on_grid(self._length)

    @property
    def part(self) -> float:
        """Return how far (L2, in steps of the grid) one row moves a contribution by being in it, rounded up."""
        return self._on_grid(self._length / 2)

    @property
    def _length(self) -> Fraction:
        """Return how far replacing what is protected moves a gradient, in steps of the grid."""
        length = Fraction(self.clip) * 2 * Fraction(1 + 2**-40) / Fraction(2) ** self.grid_exponent
        if self.records is not None:
            length *= (1 + Fraction(self.records.most) ** 2 / 2**52) / self.records.least
        return length

    def _on_grid(self, length: Fraction) -> float:
        return math.nextafter(float(length) + diagonal_upper(Fraction(1), self.dimension), math.inf)

    def why_not_contracting(self, rate_max: float) -> str | None:
        return why_not_contracting(self.guarantees, self.clip, self.regularization, rate_max)

    def zero(self) -> Floats:
        return np.zeros(self.dimension)

    @property
    def starts_at_zero(self) -> bool:
        return self.start_digest is None

    def start(self) -> Floats:
        """Return the model that learning starts with; raise `VerificationFailed` unless it is the signed one."""
        if self.starts_at_zero:
            return self.zero()
        found = start_of(self.objective, self.dimension)
        if start_digest(found, self.objective.constants()) != self.start_digest:
            raise VerificationFailed(
                "the model that is installed here does not start with the values that bootstrap signed; the same "
                "version of it, and of the libraries that make its first values, is needed on every machine"
            )
        return found

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

    def of_records(self, model: Floats, examples: Examples, divisor: float, chosen: Bools | None = None) -> Floats:
        """Return the sum of the clipped gradients of the chosen rows, or of all, divided, on the grid."""
        found = clipped_sum(self.objective, model, examples, self.clip, chosen)
        return np.asarray(snapped(found / divisor, self.step))

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
        descent.objective.check(examples)
        size = None if descent.records is not None else descent.batch
        self._batches = [self._ready(examples, rows) for rows in batches(len(examples), size)]
        self._start = None if descent.starts_at_zero else descent.start()  # checked by every learner
        self.moved = descent.moved

    def zero(self) -> Floats:
        return self._descent.zero()

    def start(self) -> Floats:
        """Return the model that learning starts with."""
        return self.zero() if self._start is None else self._start.copy()

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self._rows

    def gradient(self, model: Floats, visit: int, rows: Ints | None = None) -> Floats:
        """Return the contribution at visit number `visit`, counted from 0.

        `rows` is a draw of which rows it is over. Where there is none although rows are drawn, it is what is expected.
        """
        part, most, share = self._batches[visit % len(self._batches)]
        if self._descent.records is not None:
            return self._of_records(model, part, most, rows)
        if most is None:
            return self._descent.contribution(model, part)
        objective: Any = self._descent.objective
        found = objective.clipped_with(model, part.features, part.targets, most, share)
        found = shortened(found, self._clip)
        found /= self._step  # a power of two, so nothing is rounded but to the nearest step
        np.rint(found, out=found)
        found *= self._step
        return np.asarray(found)

    def _of_records(self, model: Floats, part: Examples, most: Any, rows: Ints | None) -> Floats:
        batch = self._descent.batch
        divisor = float(self._rows if batch is None else max(batch, self._rows) if rows is None else batch)
        chosen: Bools | None = None
        if rows is not None:
            chosen = np.zeros(self._rows, dtype=np.bool_)
            chosen[minibatches.chosen(rows, self._rows)] = True
        if most is None:
            return self._descent.of_records(model, part, divisor, chosen)
        objective: Any = self._descent.objective
        found = objective.clipped_with(model, part.features, part.targets, most, 1.0 / divisor, chosen)
        return np.asarray(snapped(found, self._step))

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
