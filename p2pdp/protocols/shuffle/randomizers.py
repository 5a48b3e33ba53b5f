"""Which local randomizer a spec of network shuffling asks for, and the value that a user's rows stand for.

A user reports the first of its rows: a category, bounded numbers, or with PrivUnit that row scaled to length 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import NoisePart, Spec
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.reporting.reals import RealReports


def randomizer_of(spec: Spec, dimensions: int) -> Randomizer:
    """Return what `[noise]`, `[task]` and `[data] clip` describe; `dimensions` is how many numbers a row has."""
    noise = spec.noise
    if spec.task.kind == "histogram":
        assert spec.task.categories is not None
        return _of_categories(noise, spec.task.categories)
    if noise.mechanism == "privunit":
        assert noise.epsilon is not None
        return UnitReports(dimensions, noise.epsilon)
    assert spec.data.clip is not None
    return RealReports(
        Bounds(*spec.data.clip),
        dimensions,
        noise.mechanism,
        sigma=noise.sigma,
        epsilon=noise.epsilon,
        delta=noise.delta,
    )


def _of_categories(noise: NoisePart, categories: int) -> Randomizer:
    if noise.mechanism == "none":
        return KaryReports(categories, None)
    assert noise.epsilon is not None
    if noise.encoding == "unary":
        return UnaryReports(categories, noise.epsilon)
    if noise.encoding == "binary":
        return BinaryReports(categories, noise.epsilon)
    return KaryReports(categories, noise.epsilon)


def reported_value(randomizer: Randomizer, rows: Any) -> Any:
    """Return what a user reports, from its rows, one a contribution."""
    first = np.asarray(rows)[0]
    if isinstance(randomizer, RealReports):
        return np.asarray(first, dtype=np.float64).reshape(-1)
    if not isinstance(randomizer, UnitReports):
        return int(first)
    row = np.asarray(first, dtype=np.float64).reshape(-1)
    length = float(np.linalg.norm(row))
    if not length > 0.0:
        raise UsageError("[noise] mechanism: privunit reports directions, and a user's first row has none: it is 0.")
    return row / length
