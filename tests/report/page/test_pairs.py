from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.pairs import Gathering
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.report.page.pairs import blocks_of, by_distance, finite, known, rows, rows_of, spread, spread_of
from tests.support.made import matrix


def test_best_typical_and_worst_pair() -> None:
    found = spread(matrix(), matrix() / 2)
    assert (found.worst.user, found.worst.observer, found.worst.epsilon) == (2, 1, 2.01)
    assert (found.best.user, found.best.observer, found.best.epsilon) == (0, 1, 0.01)
    assert found.typical is not None
    assert found.typical.epsilon == 1.02, "the upper one of the two in the middle"
    assert (found.worst.mu, found.count, found.infinite) == (1.005, 6, 0)


def test_infinite_and_unknown_pairs() -> None:
    epsilon = matrix()
    epsilon[:, 0] = math.nan
    epsilon[0, 2] = math.inf
    found = spread(epsilon, None)
    assert (found.count, found.infinite) == (4, 1)
    assert (found.worst.user, found.worst.observer, found.worst.mu) == (0, 2, None)
    leaks = matrix()
    leaks[0, 2] = math.nan
    assert spread(epsilon, leaks).worst.mu is None
    assert spread(epsilon, None, np.full((3, 3), 0.25)).worst.variation == 0.25
    assert spread(epsilon, None, leaks).worst.variation is None
    assert known(epsilon)
    assert not known(None)
    assert not known(np.full((2, 2), np.nan))


def test_of_pairs_that_were_not_held_all_but_the_median_is_told() -> None:
    whole = matrix()
    found = Gathering(3, 1e-5)
    for observer in range(3):
        found.add([observer], whole[:, [observer]], whole[:, [observer]])
    totals, epsilon = found.totals(), epsilons_of(1e-5, whole)
    one, other = spread_of(totals), spread(epsilon, whole)
    for few, many in ((one.worst, other.worst), (one.best, other.best)):
        assert few.epsilon == pytest.approx(many.epsilon)
        assert (few.user, few.observer, few.mu) == (many.user, many.observer, many.mu)
    assert (one.typical, one.count, one.infinite) == (None, other.count, other.infinite)
    for few_row, row in zip(rows_of(totals), rows(epsilon), strict=True):
        assert (few_row.user, few_row.observer) == (row.user, row.observer)
        assert (few_row.worst, few_row.mean) == pytest.approx((row.worst, row.mean))
    dearer = spread_of(totals.with_cost(1.0))
    assert (dearer.worst.mu, dearer.best.mu) == (None, None)


def test_of_equal_pairs_the_first_is_named() -> None:
    found = spread(np.where(np.eye(4, dtype=bool), math.nan, 1.0), None)
    assert (found.worst.user, found.worst.observer) == (0, 1)


def test_each_user_has_its_strongest_observer() -> None:
    epsilon = matrix()
    epsilon[1, :] = math.nan
    found = rows(epsilon)
    assert [(row.user, row.observer, row.worst) for row in found] == [(0, 2, 0.02), (2, 1, 2.01)]
    assert found[0].mean == pytest.approx(0.015)
    epsilon[0, 1] = math.inf
    assert (rows(epsilon)[0].worst, rows(epsilon)[0].mean) == (math.inf, math.inf)


def test_pairs_are_gathered_by_distance() -> None:
    distances = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    near, far = by_distance(matrix(), distances)
    assert (near.distance, near.pairs, near.best, near.worst) == (1, 4, 0.01, 2.01)
    assert (far.distance, far.pairs, far.best, far.worst) == (2, 2, 0.02, 2.0)
    assert near.mean == pytest.approx((0.01 + 1.0 + 1.02 + 2.01) / 4)
    distances[0, 2] = math.inf
    assert by_distance(matrix(), distances)[1].pairs == 1, "those that no way joins are at no distance"


@given(st.integers(2, 30), st.integers(1, 12), st.randoms(use_true_random=False))
def test_blocks_show_the_worst_in_them(n: int, most: int, random: object) -> None:
    epsilon = np.random.default_rng(random.randrange(2**32)).uniform(0, 9, (n, n))  # type: ignore[attr-defined]
    np.fill_diagonal(epsilon, np.nan)
    epsilon[0, 1] = math.inf
    shown, side = blocks_of(epsilon, most)
    assert len(shown) <= most or side == 1
    assert side == -(-n // most)
    for (down, across), value in np.ndenumerate(shown):
        block = epsilon[down * side : (down + 1) * side, across * side : (across + 1) * side]
        inside = block[~np.isnan(block)]
        assert math.isnan(value) if len(inside) == 0 else value == inside.max()


def test_only_finite_values_count_for_scales() -> None:
    assert finite(np.array([[1.0, math.nan], [math.inf, 2.0]])) == [1.0, 2.0]
    assert finite([]) == []
