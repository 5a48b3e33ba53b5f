"""The interface of an objective that users minimise together, and what follows from its guarantees.

An objective is a function of a model (a vector) and of examples: the mean of a loss over them. A user's part in
learning is the gradient over its own rows, clipped to a norm that the spec gives, and noised. `p2pdp.run` and
`p2pdp.simulate` take an objective of the caller's own, a subclass of `Objective`, as `task`.

Clip first, then noise: whatever an objective returns is shortened to the clip by the caller (`tasks/descent.py`), so
a user who is replaced moves one contribution by twice the clip at most, and no guarantee is needed for that. What
amplification by iteration needs is more: that a step of descent never moves two models further apart [FMTT18,
section 3]. A gradient step of a convex loss of smoothness b does not, for steps of
2/b at most. A gradient that was shortened as a whole need not be the gradient of anything, so such a step may. Where
each example's gradient is shortened and the loss is a function of one margin, or of one distance, the shortened
gradient is that of another convex loss of no more smoothness (Huber's), and the step contracts again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.errors import UsageError
from p2pdp.core.values import snapped
from p2pdp.tasks.examples import Examples, examples_of

PER_EXAMPLE: Final = "per-example"
WHOLE: Final = "whole"
START_STEP: Final = 2.0**-30
"""Models begin on this grid, so that the digest of a start is of numbers that every peer has to the last bit."""
START_MAX: Final = 2.0**20


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Bounds for the loss of any one example, for features no longer than a bound; None where there is no bound.

    `lipschitz` bounds the gradient before it is clipped. `clipping` says what is shortened: the gradient of each
    example, such that a step still contracts, or the mean of all as a whole. `convex_projection` is for objectives that
    project: on a convex set. All promise that a gradient depends on model and examples alone: they keep no state.
    """

    convex: bool = False
    lipschitz: float | None = None
    smoothness: float | None = None
    clipping: str = WHOLE
    convex_projection: bool = False


class Objective:
    """To be subclassed; methods get the model as a float64 vector, and must not change what they are given."""

    name: str = "own"
    score_name: str | None = None

    def dimension(self, columns: int) -> int:
        """Return how many numbers the model has, for examples with so many features."""
        return columns

    def start(self, dimension: int) -> Floats:
        """Return the model that learning starts with, the same on every peer: zeros by default."""
        return np.zeros(dimension)

    def constants(self) -> bytes:
        """Return what else losses depend on, such as weights that are not learned; the start's digest covers it."""
        return b""

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        """Return the mean of the examples' gradients at the model."""
        raise NotImplementedError

    def loss(self, model: Floats, examples: Examples) -> float:
        """Return the mean of the examples' losses."""
        raise NotImplementedError

    def score(self, model: Floats, examples: Examples) -> float | None:
        """Return how good the model is on the examples, such as an accuracy; None where there is no such measure."""
        return None

    def project(self, model: Floats) -> Floats:
        """Return the nearest model of those that are allowed; all of them are by default.

        A model that another user passed on carries fine noise, and is projected again before a gradient is taken.
        """
        return model

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        """Return the gradient, if the objective knows a better way to keep it within `clip` than to shorten it."""
        return self.gradient(model, examples)

    def clipped_sum(self, model: Floats, examples: Examples, clip: float, chosen: Bools | None = None) -> Floats:
        """Return the sum of the gradients of the `chosen` examples, or of all, each by itself no longer than `clip`.

        An example's own gradient does not depend on which others are chosen; their sum is rounded.
        """
        total = np.zeros(len(model))
        for row in range(len(examples)) if chosen is None else np.flatnonzero(chosen).tolist():
            one = examples_of(examples.features[row : row + 1], examples.targets[row : row + 1], examples.norm_max)
            total += shortened(np.asarray(self.clipped_gradient(model, one, clip), dtype=np.float64), clip)
        return total

    def check(self, examples: Examples) -> None:
        """Refuse a user's rows that the loss has no meaning for, before the user contributes."""

    def arrays(self, model: Floats) -> Mapping[str, Floats]:
        """Return the model's numbers as named arrays, where it consists of such; `model` may have a row for each user.

        They are written to `state_dict.npz`.
        """
        return {}

    def guarantees(self, norm_max: float | None) -> Guarantees:
        """Return what is promised of the loss: nothing by default, and then only the local ceiling can be claimed."""
        return Guarantees()


def why_not_contracting(guarantees: Guarantees, clip: float, regularization: float, rate_max: float) -> str | None:
    """Return why a step might move two models further apart; None where none can."""
    if not guarantees.convex:
        return "the objective does not promise to be convex"
    if not guarantees.convex_projection:
        return "the objective does not promise to project on a convex set"
    if guarantees.smoothness is None:
        return "the gradient's slope has no bound: features need one, by [data] unit_norm, standardize or clip"
    clips = guarantees.lipschitz is None or guarantees.lipschitz > clip
    if clips and guarantees.clipping != PER_EXAMPLE:
        return "gradients are clipped as a whole, and such a step may move models apart"
    steepest = guarantees.smoothness + regularization
    if rate_max * steepest > 2.0:
        return f"a rate of {rate_max:g} is above 2/smoothness = {2.0 / steepest:.6g}: steps may move models apart"
    return None


def clipped_sum(
    objective: Objective, model: Floats, examples: Examples, clip: float, chosen: Bools | None = None
) -> Floats:
    """Return the sum of clipped gradients: row by row for objectives of others, which then need to promise nothing."""
    ours = type(objective).__module__.partition(".")[0] == __name__.partition(".")[0]
    return (type(objective) if ours else Objective).clipped_sum(objective, model, examples, clip, chosen)


def shortened(vector: Floats, clip: float) -> Floats:
    """Return the vector, no longer than `clip`; zeros for one that is not finite.

    An error would tell everybody that a row with such a gradient took part.
    """
    square = float(vector @ vector)
    if square <= clip * clip:
        return vector
    if not np.isfinite(square):
        largest = float(np.abs(vector).max())
        if not np.isfinite(largest):
            return np.zeros_like(vector)
        return shortened(vector / largest, 1.0) * clip
    return np.asarray(vector * (clip / square**0.5))


def start_of(objective: Objective, dimension: int) -> Floats:
    """Return where learning starts, on the grid of starts."""
    found = np.asarray(objective.start(dimension), dtype=np.float64)
    if found.shape != (dimension,):
        raise UsageError(f"The objective's start has the shape {found.shape}, and its models have {dimension} numbers.")
    if not np.isfinite(found).all() or np.abs(found).max(initial=0.0) > START_MAX:
        raise UsageError(f"The objective's start must be finite numbers within {START_MAX:g}.")
    return np.asarray(snapped(found, START_STEP))


def start_digest(start: Floats, constants: bytes) -> str:
    """Return the digest of a start, for bootstrap to sign and for every learner to check."""
    digest = hashlib.sha256(b"p2pdp start")
    digest.update(len(start).to_bytes(8, "big") + (start + 0.0).astype("<f8").tobytes() + constants)
    return f"sha256:{digest.hexdigest()}"
