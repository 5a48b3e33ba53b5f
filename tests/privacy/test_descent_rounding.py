from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.values import snapped
from p2pdp.privacy.descent_rounding import Steps, floats_of_mean
from p2pdp.tasks.descent import Descent, GradientInputs
from p2pdp.tasks.examples import examples_of
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MeanEstimation
from tests.support import exact_descent as exact

OBJECTIVES: dict[str, Any] = {
    "mean": MeanEstimation(),
    "linear_regression": LinearRegression(),
    "logistic_regression": LogisticRegression(),
}
ONE = Steps(
    dimension=4, fine=2.0**-40, coarse=2.0**-31, range_=2.0**7, rate=0.5, clip=1.0, sigma=1.0,
    smoothness=0.25, regularization=0.0, radius=None, rows=1,
)  # fmt: skip


def close(number: float) -> Any:
    return pytest.approx(number, rel=1e-5, abs=0.0)


def test_a_step_by_hand() -> None:
    """Half a step for what came and half a step for what goes, each twice, for the length of four numbers."""
    floats = 4 * 2.0**-53 * 2 * (2.0**7 + 0.5 * 65)
    assert ONE.message == close((2.0**-39 + floats) * 1.002)
    shorter = replace(ONE, regularization=1.0)
    assert shorter.message == close((2.0**-39 + 4 * 2.0**-53 * 2 * (1.5 * 2.0**7 + 0.5 * 65)) * 1.002)
    assert replace(ONE, radius=3.0).message - ONE.message == close(8 * 2.0**-53 * 3.0 * 1.002)
    computed = 2.0**-53 * (0.25 * 4 * 2 * 2.0**7 + 4 + 1 + 32)
    assert ONE.gradient == close((2.0**-31 + 0.25 * 2.0**-40 + computed) * 1.002)
    assert ONE.square(2.0**-18) == close((ONE.message * 2.0**18) ** 2 + ONE.gradient**2)
    own = replace(ONE, own=True)
    assert own.message - ONE.message == close(2.0**-39 * 1.002)
    assert own.gradient > ONE.gradient


@given(
    seed=st.integers(0, 10**9), d=st.integers(1, 12), rate=st.sampled_from([1e-3, 0.2, 1.0, 1.9]),
    regularization=st.sampled_from([0.0, 0.1, 0.9, 1.0]), radius=st.sampled_from([None, 0.7, 3.0]),
    fine=st.sampled_from([2.0**-43, 2.0**-36]),
)  # fmt: skip
@settings(deadline=None)
def test_no_step_of_floats_is_farther_from_the_exact_one(
    seed: int, d: int, rate: float, regularization: float, radius: float | None, fine: float
) -> None:
    """Of the machine's own arithmetic, beginning half a step off in every number."""
    random = np.random.default_rng(seed)
    bound = replace(
        ONE, dimension=d, fine=fine, range_=16.0, rate=rate, regularization=regularization, radius=radius, sigma=2.0
    )
    descent = Descent(
        MeanEstimation(), MeanEstimation().guarantees(None), d, 1.0, -31, regularization=regularization, radius=radius
    )
    size = min(radius or 16.0, 16.0) / math.sqrt(d)
    model = snapped(random.uniform(-size, size, d), bound.fine)
    noised = snapped(random.normal(0.0, random.choice([1e-3, 2.0]), d), bound.coarse)
    corner = [part + exact.Fraction(sign * bound.fine / 2) for part, sign in zip(
        exact.exactly(model), random.choice([-1.0, 1.0], d), strict=True)]  # fmt: skip
    for later in (1.0, 0.5, 1e-6):  # rates fall, and the bound is for the first
        found = snapped(descent.moved(model, noised, rate * later), bound.fine)
        ideal = exact.moved(corner, exact.exactly(noised), rate * later, regularization, radius)
        assert exact.apart(exact.exactly(found), ideal) <= bound.message


@given(
    seed=st.integers(0, 10**9), kind=st.sampled_from(sorted(OBJECTIVES)), d=st.integers(1, 6), rows=st.integers(1, 5),
    clip=st.sampled_from([0.05, 0.5, 4.0]), spread=st.sampled_from([0.1, 16.0]),
    fine=st.sampled_from([2.0**-48, 2.0**-44]),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_no_gradient_of_floats_is_farther_from_the_exact_one(
    seed: int, kind: str, d: int, rows: int, clip: float, spread: float, fine: float
) -> None:
    random = np.random.default_rng(seed)
    features = random.uniform(-1.0, 1.0, (rows, d))
    targets = np.where(random.uniform(size=rows) < 0.5, -1.0, 1.0) * (1.0 if kind.startswith("logi") else 7.3)
    norm = float(np.sqrt((features**2).sum(axis=1)).max())
    told = OBJECTIVES[kind].guarantees(norm)
    # Grids so fine that floats are most of what is measured.
    bound = replace(
        ONE, dimension=d, fine=fine, coarse=2.0**-56, range_=16.0, clip=clip, smoothness=told.smoothness, rows=rows
    )
    inputs = GradientInputs(Descent(OBJECTIVES[kind], told, d, clip, -56), examples_of(features, targets, None))
    model = snapped(random.uniform(-spread, spread, d), bound.fine)
    found = inputs.gradient(model, 0)
    corner = [part + exact.Fraction(sign * bound.fine / 2) for part, sign in zip(
        exact.exactly(model), random.choice([-1.0, 1.0], d), strict=True)]  # fmt: skip
    ideal = exact.gradient(kind, corner, features, targets, clip)
    assert exact.apart(exact.exactly(found), ideal) <= bound.gradient


def test_a_mean_over_a_million_rows_is_off_by_more_than_half_a_step_of_noise() -> None:
    """All rows are alike, so that the exact gradient is known; a sum row by row drifts."""
    rows, clip, sigma = 10**6, 2.0, 0.01
    objective = MeanEstimation()
    inputs = GradientInputs(
        Descent(objective, objective.guarantees(None), 2, clip, -60),
        examples_of(np.full((rows, 2), 0.7), np.zeros(rows), None),
    )
    model = np.array([0.25, 0.25])
    off = exact.apart(exact.exactly(inputs.gradient(model, 0)), [exact.Fraction(0.25) - exact.Fraction(0.7)] * 2)
    assert sigma * 2.0**-31 < off <= floats_of_mean(2, clip, rows)
