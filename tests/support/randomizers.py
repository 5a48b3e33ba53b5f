"""Every local randomizer in some sizes, values for it, and draws that are what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.mechanisms.sampler import SeededSampler

UNIT = Bounds(0.0, 1.0)

MAKERS: dict[str, Callable[[], Randomizer]] = {
    "kary": lambda: KaryReports(5, 1.0),
    "kary many": lambda: KaryReports(300, 3.0),
    "kary none": lambda: KaryReports(5, None),
    "unary": lambda: UnaryReports(5, 1.0),
    "unary many": lambda: UnaryReports(20, 3.0),
    "binary": lambda: BinaryReports(5, 1.0),
    "binary full": lambda: BinaryReports(8, 4.0),
    "laplace": lambda: RealReports(UNIT, 1, "laplace", epsilon=1.0),
    "laplace vector": lambda: RealReports(Bounds(-2.0, 3.0), 3, "laplace", sigma=1.0),
    "gaussian": lambda: RealReports(UNIT, 2, "gaussian", epsilon=1.0, delta=1e-5),
    "real none": lambda: RealReports(UNIT, 1, "none"),
    "unit": lambda: UnitReports(6, 2.0),
    "unit flat": lambda: UnitReports(2, 1.0),
    "unit large": lambda: UnitReports(40, 12.0),
}


class OneSampler:
    """Draws, one after another, from a seeded sampler; `asked` is what was asked for."""

    def __init__(self, seed: int = 1) -> None:
        self._sampler = SeededSampler(seed, "randomizers")
        self.asked: list[tuple[Mechanism, Shape]] = []

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        self.asked.append((mechanism, shape))
        return self._sampler.batch(mechanism, shape, 1)[0]

    def choice(self, options: int) -> int:
        raise AssertionError("a randomizer makes no routing choices")


def values_for(randomizer: Randomizer, count: int, seed: int = 2) -> np.ndarray:
    """Uneven values, a row each, and categories as whole numbers."""
    generator = np.random.default_rng(seed)
    if randomizer.counted:
        return np.minimum(generator.geometric(0.4, count) - 1, randomizer.outputs - 1)
    if isinstance(randomizer, UnitReports):
        rows = generator.standard_normal((count, randomizer.width)) + 1.5
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert isinstance(randomizer, RealReports)
    low, high = randomizer.bounds.low, randomizer.bounds.high
    return np.asarray(low + (high - low) * generator.beta(2, 5, (count, randomizer.width)))


def vectors_of(randomizer: Randomizer, values: np.ndarray) -> np.ndarray:
    """The values as what weights are unbiased for."""
    return np.eye(randomizer.outputs)[values] if randomizer.counted else values
