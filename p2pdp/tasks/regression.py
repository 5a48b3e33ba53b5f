"""The objectives that come with the package: the mean of vectors, linear and logistic regression.

Of all three the gradient of one example is a number times a fixed vector, or a distance, and is shortened for each
example by itself: slope and distance are monotone and stay so, so that a shortened gradient is that of a convex
loss (`objectives.py`). Targets of logistic regression are 1 and -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.objectives import PER_EXAMPLE, Guarantees, Objective

_EXPONENT_MAX: Final = 500.0  # e to this is finite, and its inverse counts for nothing


@dataclass(frozen=True)
class MeanEstimation(Objective):
    """Half the squared distance to each row; its least is at their mean."""

    name: str = "mean"

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        return np.asarray(model - examples.features.mean(axis=0))

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        return self.clipped(model, examples.features, examples.targets, clip)

    def clipped_sum(self, model: Floats, examples: Examples, clip: float, chosen: Bools | None = None) -> Floats:
        each = self._each(model, examples.features, clip)
        return np.asarray((each if chosen is None else each[chosen]).sum(axis=0))

    def clipped(self, model: Floats, features: Floats, targets: Floats, clip: float) -> Floats:
        """Return clipped gradients for examples [..., row, column] and models [..., column] alike."""
        return np.asarray(self._each(model, features, clip).mean(axis=-2))

    def _each(self, model: Floats, features: Floats, clip: float) -> Floats:
        away = model[..., None, :] - features
        lengths = np.sqrt((away * away).sum(axis=-1))
        return np.asarray(away * np.minimum(1.0, clip / np.maximum(lengths, 1e-300))[..., None])

    def loss(self, model: Floats, examples: Examples) -> float:
        return float(((model - examples.features) ** 2).sum(axis=1).mean() / 2.0)

    def guarantees(self, norm_max: float | None) -> Guarantees:
        return Guarantees(convex=True, lipschitz=None, smoothness=1.0, clipping=PER_EXAMPLE, convex_projection=True)


class MarginModel(Objective):
    """A loss that depends on an example only by its target and the product of its features with the model."""

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Return the loss's derivative by the margin, for each example."""
        raise NotImplementedError

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        features = examples.features
        return np.asarray(self.slopes(features @ model, examples.targets) @ features / len(features))

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        return self.clipped(model, examples.features, examples.targets, clip)

    def clipped(self, model: Floats, features: Floats, targets: Floats, clip: float) -> Floats:
        """Return clipped gradients for examples [..., row, column] and models [..., column] alike."""
        if model.ndim == 1:
            return self.clipped_with(model, features, targets, limits(features, clip), 1.0 / len(features))
        slopes = self.slopes(np.einsum("...ij,...j->...i", features, model), targets)
        most = limits(features, clip)
        slopes = np.minimum(np.maximum(slopes, -most), most)
        return np.asarray(np.einsum("...i,...ij->...j", slopes, features) / features.shape[-2])

    def clipped_with(
        self, model: Floats, features: Floats, targets: Floats, most: Floats, share: float, chosen: Bools | None = None
    ) -> Floats:
        """Return the same from what does not change from one gradient to the next: how steep each example may be.

        Of all but the `chosen` examples nothing counts, and which others are chosen changes no slope.
        """
        slopes = self.slopes(features @ model, targets)
        if chosen is not None:
            slopes[~chosen] = 0.0
        np.minimum(slopes, most, out=slopes)
        np.maximum(slopes, -most, out=slopes)
        slopes *= share
        return np.asarray(slopes @ features)


def limits(features: Floats, clip: float) -> Floats:
    """Return how steep the loss of each example may be for its gradient to be within the clip."""
    lengths = np.sqrt((features * features).sum(axis=-1))
    return np.asarray(clip / np.maximum(lengths, 1e-300))


@dataclass(frozen=True)
class LinearRegression(MarginModel):
    """Half the squared difference between margin and target."""

    name: str = "linear_regression"
    score_name: str | None = "r2"

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        return np.asarray(margins - targets)

    def loss(self, model: Floats, examples: Examples) -> float:
        return float(((examples.features @ model - examples.targets) ** 2).mean() / 2.0)

    def score(self, model: Floats, examples: Examples) -> float | None:
        """Return the share of the targets' variance that is explained; None where they do not vary."""
        spread = float(examples.targets.var()) if len(examples) else 0.0
        return 1.0 - 2.0 * self.loss(model, examples) / spread if spread > 0.0 else None

    def guarantees(self, norm_max: float | None) -> Guarantees:
        smoothness = None if norm_max is None else norm_max**2
        return Guarantees(
            convex=True, lipschitz=None, smoothness=smoothness, clipping=PER_EXAMPLE, convex_projection=True
        )


@dataclass(frozen=True)
class LogisticRegression(MarginModel):
    """ln(1 + e^(-target margin))."""

    name: str = "logistic_regression"
    score_name: str | None = "accuracy"

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        scaled = targets * margins
        np.minimum(scaled, _EXPONENT_MAX, out=scaled)
        np.maximum(scaled, -_EXPONENT_MAX, out=scaled)
        np.exp(scaled, out=scaled)
        scaled += 1.0
        return np.asarray(-targets / scaled)

    def loss(self, model: Floats, examples: Examples) -> float:
        return float(np.logaddexp(0.0, -examples.targets * (examples.features @ model)).mean())

    def score(self, model: Floats, examples: Examples) -> float | None:
        """Return the share of the examples whose sign is told; a margin of 0 counts as positive."""
        told = np.where(examples.features @ model >= 0.0, 1.0, -1.0)
        return float((told == examples.targets).mean()) if len(examples) else None

    def guarantees(self, norm_max: float | None) -> Guarantees:
        smoothness = None if norm_max is None else norm_max**2 / 4.0
        return Guarantees(
            convex=True, lipschitz=norm_max, smoothness=smoothness, clipping=PER_EXAMPLE, convex_projection=True
        )
