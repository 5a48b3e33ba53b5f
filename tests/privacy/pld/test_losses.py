from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.arrays import Floats
from p2pdp.privacy.pld.losses import Losses, from_curves, from_outcomes, from_points, log_moments_of, under
from tests.support.curves import of_gaussian, of_sampled

EPSILONS = (-2.0, -0.7, -0.1, 0.0, 0.03, 0.4, 1.0, 2.5)


def delta_of(losses: Losses, epsilon: float) -> float:
    """The curve of a pair with these losses, infinite ones included, by its definition."""
    worth = -np.expm1(np.minimum(epsilon - losses.losses(), 0.0))
    return float(losses.masses @ np.maximum(worth, 0.0)) + losses.infinite


def true_delta(first: Any, second: Any, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@dataclass
class Listed:
    excess: Floats
    base: Floats


def listed(first: Any, second: Any) -> Listed:
    told = first > second
    return Listed((first - second)[told], second[told])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two distributions over few outcomes, none of which is impossible."""
    size = draw(st.integers(2, 6))
    masses = [np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size))) for _ in range(2)]
    return masses[0] / masses[0].sum(), masses[1] / masses[1].sum()


@given(pair=pairs(), step=st.floats(0.01, 1.0))
def test_splitting_outcomes_never_lowers_a_curve(pair: tuple[Any, Any], step: float) -> None:
    first, second = pair
    losses = from_outcomes(step, listed(first, second), listed(second, first))
    assert losses.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert float(losses.masses @ np.exp(-losses.losses())) == pytest.approx(1.0, abs=1e-12)
    for epsilon in EPSILONS:
        exact = true_delta(first, second, epsilon)
        assert exact - 1e-12 <= delta_of(losses, epsilon) <= true_delta(first, second, epsilon - step) + 1e-12
        assert delta_of(losses.reversed(), epsilon) >= true_delta(second, first, epsilon) - 1e-12


@given(one=pairs(), other=pairs(), step=st.floats(0.05, 0.5))
def test_what_dominates_each_pair_dominates_both_together(
    one: tuple[Any, Any], other: tuple[Any, Any], step: float
) -> None:
    """[ZDW22], on all outcomes of two pairs and the convolution of their dominating losses."""
    found = [from_outcomes(step, listed(p, q), listed(q, p)) for p, q in (one, other)]
    together = Losses(step, found[0].first + found[1].first, np.convolve(found[0].masses, found[1].masses), 0.0)
    first, second = (np.outer(one[side], other[side]).ravel() for side in (0, 1))
    for epsilon in EPSILONS:
        assert delta_of(together, epsilon) >= true_delta(first, second, epsilon) - 1e-12


@given(pair=pairs(), step=st.floats(0.05, 1.0))
def test_joining_points_and_splitting_outcomes_give_the_same_pair(pair: tuple[Any, Any], step: float) -> None:
    """[DGKKM22], both ways of it."""
    first, second = pair
    split = from_outcomes(step, listed(first, second), listed(second, first))
    grid = step * np.arange(max(-split.first, split.first + len(split.masses)) + 1)
    joined = from_points(
        np.array([true_delta(first, second, epsilon) for epsilon in grid]),
        np.array([true_delta(second, first, epsilon) for epsilon in grid]),
        step,
    )
    for epsilon in EPSILONS:
        assert delta_of(joined, epsilon) == pytest.approx(delta_of(split, epsilon), abs=1e-10)


@given(pair=pairs(), step=st.floats(0.05, 1.0), lowered=st.floats(0.0, 0.2))
def test_a_pair_under_knots_never_exceeds_the_curve(pair: tuple[Any, Any], step: float, lowered: float) -> None:
    first, second = pair
    last = math.ceil(max(abs(np.log(first / second)).max(), step) / step)
    grid = step * np.arange(-last, last + 1)
    over = [true_delta(first, second, epsilon) - max(0.0, -math.expm1(epsilon)) for epsilon in grid]
    knots = np.maximum(np.array(over) * (1.0 - lowered), 0.0)
    knots[[0, -1]] = 0.0
    # a chord of the curve lies above it between two knots, so compare at the knots
    one, turned = under(knots, -last, step)
    for epsilon in grid:
        assert delta_of(one, epsilon) <= true_delta(first, second, epsilon) + one.slack + 1e-9
        assert delta_of(turned, -epsilon) <= true_delta(second, first, -epsilon) + turned.slack + 1e-9


@pytest.mark.parametrize("step", [1e-3, 0.1, 0.7])
def test_joined_points_lie_above_and_are_met_at_the_grid(step: float) -> None:
    curve = of_gaussian(1.0)
    losses = from_curves(curve, curve, step, 12.0)
    for epsilon in (0.0, step, 7 * step, 10.5 * step):
        exact = float(curve(np.array([epsilon]))[0])
        found = delta_of(losses, epsilon)
        assert found >= exact * (1.0 - 1e-9)
        if epsilon != 10.5 * step:
            assert found == pytest.approx(exact, rel=1e-6, abs=1e-12)


def test_reversing_twice_changes_nothing() -> None:
    losses = from_curves(*of_sampled(0.1, 2.0), 1e-2, 20.0)
    again = losses.reversed().reversed()
    assert (again.first, again.infinite, again.vanished) == (losses.first, losses.infinite, losses.vanished)
    np.testing.assert_allclose(again.masses, losses.masses, rtol=1e-12)
    total = losses.reversed().masses.sum() + losses.vanished
    assert total == pytest.approx(1.0, abs=1e-9)


@given(pair=pairs(), exponent=st.floats(-30.0, 30.0))
def test_log_moments_are_those_of_the_masses(pair: tuple[Any, Any], exponent: float) -> None:
    losses = from_outcomes(0.1, listed(*pair), listed(*pair[::-1]))
    direct = math.log(math.fsum(losses.masses * np.exp(exponent * losses.losses())))
    assert losses.log_moments(np.array([exponent]))[0] == pytest.approx(direct, abs=1e-9)


def test_log_moments_are_exact_where_the_largest_power_has_next_to_no_mass() -> None:
    losses = Losses(1.0, 0, np.array([0.5, 0.5, 0.0]))
    assert losses.log_moments(np.array([800.0]))[0] == pytest.approx(800.0 + math.log(0.5))


def test_log_moments_of_several_are_those_of_each() -> None:
    several = [
        Losses(0.1, -1, np.array([0.2, 0.3, 0.5])),
        Losses(0.1, 0, np.array([0.5, 0.25, 0.25])),
        Losses(0.1, -1, np.array([0.1, 0.9, 0.0])),
        Losses(0.2, -1, np.array([0.2, 0.3, 0.5])),
    ]
    exponents = np.array([-3.0, 0.5, 40.0])
    found = log_moments_of(several, exponents)
    for row, one in zip(found, several, strict=True):
        assert row.tobytes() == one.log_moments(exponents).tobytes()
        np.testing.assert_allclose(row, np.log(np.exp(exponents[:, None] * one.losses()) @ one.masses), rtol=1e-12)
