from __future__ import annotations

import numpy as np

from p2pdp.tasks.unit_mixture import DIMENSIONS, unit_mixture


def test_two_kinds_of_unit_vectors() -> None:
    rows = unit_mixture(201, np.random.default_rng(1))
    assert rows.shape == (201, DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    along = rows @ np.full(DIMENSIONS, DIMENSIONS**-0.5)
    assert np.all(np.abs(along[:100] - 0.5**0.5) < 0.15), "mean 1 beside deviation 1"
    assert np.all(along[100:] > 0.99), "mean 10 beside deviation 1"


def test_one_user_and_none() -> None:
    assert unit_mixture(1, np.random.default_rng(1), 3).shape == (1, 3)
    assert unit_mixture(0, np.random.default_rng(1), 3).shape == (0, 3)
