"""Against a quadratic program that spreads what was moved over the noise by brute force, and against exact cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from p2pdp.privacy.iteration.path import exposures


def brute_force(marks: Any, rates: Any) -> float:
    """The least sum (a_t / r_t)^2 with no more spread than was contributed, and all of it in the end."""
    moved = np.where(marks, rates, 0.0)
    if not marks.any():
        return 0.0
    first = int(np.argmax(marks))
    moved, rates = moved[first:], rates[first:]
    enough = np.cumsum(moved)
    limits = [{"type": "ineq", "fun": lambda a, t=t: enough[t] - a[: t + 1].sum()} for t in range(len(moved) - 1)]
    whole = [{"type": "eq", "fun": lambda a: enough[-1] - a.sum()}]
    found = minimize(
        lambda a: ((a / rates) ** 2).sum(), moved, constraints=limits + whole, bounds=[(0, None)] * len(moved),
        method="SLSQP", options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    return float(found.fun)


@pytest.mark.parametrize("seed", range(25))
def test_the_minorant_is_the_cheapest_way(seed: int) -> None:
    generator = np.random.default_rng(seed)
    steps = int(generator.integers(1, 9))
    user = generator.integers(3, size=steps)
    rates = np.ones(steps) if seed % 2 else generator.uniform(0.3, 2.0, size=steps)
    found = exposures(np.zeros(steps, dtype=np.int64), user, rates, 3)
    for who in range(3):
        assert found[who] == pytest.approx(brute_force(user == who, rates), rel=1e-5, abs=1e-9)


def test_one_contribution_is_spread_over_all_steps_that_follow() -> None:
    found = exposures(np.zeros(5, dtype=np.int64), np.array([1, 0, 1, 1, 1]), np.full(5, 0.3), 2)
    assert found[0] == pytest.approx(1 / 4)


def test_two_in_a_row_before_anybody_looks_cost_two_not_one_and_a_half() -> None:
    """The case that the published account adds up wrongly."""
    found = exposures(np.zeros(2, dtype=np.int64), np.array([0, 0]), np.ones(2), 1)
    assert found[0] == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(40))
def test_no_contraction_tells_more(seed: int) -> None:
    """[FMTT18, Theorem 22], on the curve itself [BSA24]: steps that shrink, then add a move and noise of r."""
    generator = np.random.default_rng(seed)
    steps = int(generator.integers(1, 12))
    user, rates = generator.integers(3, size=steps), generator.uniform(0.3, 2.0, size=steps)
    shrinks = generator.uniform(0.0, 1.0, size=steps) if seed % 3 else np.ones(steps)
    kept = np.append(np.cumprod(shrinks[::-1])[::-1][1:], 1.0) * rates  # what is left of each step's unit in the end
    found = exposures(np.zeros(steps, dtype=np.int64), user, rates, 3)
    for who in range(3):
        exact = kept[user == who].sum() ** 2 / float(kept @ kept)
        assert exact <= found[who] * (1 + 1e-9)


def test_gaps_add_up_and_each_user_is_by_itself() -> None:
    gap, user = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 0, 1, 2])
    found = exposures(gap, user, np.ones(6), 4)
    assert found[0] == pytest.approx(1 / 2 + 1 / 2)
    assert found[1] == pytest.approx(1 + 1 / 2 + 1)  # in gap 1 over two steps, and over one
    assert found[2] == pytest.approx(1.0)
    assert found[3] == 0.0


def test_a_look_after_every_step_leaves_local_privacy() -> None:
    user = np.array([0, 1, 0, 0])
    assert exposures(np.arange(4), user, np.full(4, 0.1), 2).tolist() == pytest.approx([3.0, 1.0])


def test_looking_less_often_never_tells_more() -> None:
    generator = np.random.default_rng(3)
    user, rates = generator.integers(4, size=60), generator.uniform(0.5, 1.5, size=60)
    cuts = np.sort(generator.choice(np.arange(1, 60), 12, replace=False))
    often = exposures(np.searchsorted(cuts, np.arange(60), side="right"), user, rates, 4)
    seldom = exposures(np.searchsorted(cuts[::3], np.arange(60), side="right"), user, rates, 4)
    assert np.all(seldom <= often * (1 + 1e-12))


def test_nothing_seen_is_nothing_told() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert exposures(nothing, nothing, np.zeros(0), 3).tolist() == [0.0] * 3
