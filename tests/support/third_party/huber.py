"""An objective of somebody else's package: a convex loss that grows by its slope at most."""

from __future__ import annotations

from typing import Any

import numpy as np

import p2pdp


class Huber(p2pdp.Objective):
    name = "huber"

    def gradient(self, model: Any, examples: p2pdp.Examples) -> Any:
        residuals = examples.features @ model - examples.targets
        return np.clip(residuals, -1.0, 1.0) @ examples.features / len(residuals)

    def loss(self, model: Any, examples: p2pdp.Examples) -> float:
        size = np.abs(examples.features @ model - examples.targets)
        return float(np.mean(np.where(size <= 1.0, size**2 / 2.0, size - 0.5)))

    def start(self, dimension: int) -> Any:
        return np.full(dimension, 0.5)

    def guarantees(self, norm_max: float | None) -> p2pdp.Guarantees:
        smoothness = None if norm_max is None else norm_max**2
        return p2pdp.Guarantees(convex=True, lipschitz=norm_max, smoothness=smoothness)
