"""Claims of estimates."""

from __future__ import annotations

from tests.support.learners import learning

PRIVATE = learning(
    5,
    60,
    data="standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 4e-6 }\nunit_norm = true",
)
