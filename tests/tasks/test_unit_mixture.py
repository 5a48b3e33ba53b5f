from __future__ import annotations

import numpy as np

from p2pdp.tasks.unit_mixture import DIMENSIONS, mixed_direction


def test_two_kinds_of_unit_vectors() -> None:
    generator = np.random.default_rng(1)
    rows = np.array([mixed_direction(user, 201, generator.standard_normal(DIMENSIONS)) for user in range(201)])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    along = rows @ np.full(DIMENSIONS, DIMENSIONS**-0.5)
    assert np.all(np.abs(along[:100] - 0.5**0.5) < 0.15), "mean 1 beside deviation 1"
    assert np.all(along[100:] > 0.99), "mean 10 beside deviation 1"
