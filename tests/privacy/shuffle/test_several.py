from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.privacy.shuffle.krr import krr_shuffle
from p2pdp.privacy.shuffle.several import Kind, kinds_of, lower_epsilon, upper_epsilons
from tests.support import histograms


def upper(epsilon_0: float, categories: int, kinds: dict[Kind, int], delta: float) -> float:
    return float(upper_epsilons(epsilon_0, categories, [kinds], delta)[0])


@given(reports=st.integers(1, 9), others=st.integers(0, 40), dummies=st.integers(0, 40))
def test_a_gap_is_split_evenly(reports: int, others: int, dummies: int) -> None:
    kinds = kinds_of(reports, others, dummies)
    assert kinds.total() == reports
    assert sum(kind.others * count for kind, count in kinds.items()) == others
    assert sum(kind.dummies * count for kind, count in kinds.items()) == dummies
    assert max(kind.others for kind in kinds) - min(kind.others for kind in kinds) <= 1


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize(("epsilon_0", "others", "delta"), [(1.0, 99, 1e-6), (0.1, 30, 1e-9), (3.0, 200, 1e-4)])
def test_one_gap_is_one_shuffle(epsilon_0: float, categories: int, others: int, delta: float) -> None:
    lower, exact = krr_shuffle(epsilon_0, categories, others + 1, delta)
    found = upper(epsilon_0, categories, {Kind(others, 0): 1}, delta)
    assert exact * (1.0 - 1e-9) <= found <= exact * 1.005
    known = lower_epsilon(epsilon_0, categories, {Kind(others, 0): 1}, delta)
    assert 0.9 * lower <= known <= lower * (1.0 + 1e-6)


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_two_gaps_hold_whatever_the_others_have(categories: int, delta: float) -> None:
    """A gap of two others and one of two others and a uniform element, by listing all outcomes of all data."""
    epsilon_0, worst, alike = 1.0, 0.0, 0.0
    pairs = [
        tuple(histograms.histogram(epsilon_0, categories, (*held, own), dummies) for own in (0, 1))
        for dummies in (0, 1)
        for held in histograms.others(categories, 2)
    ]
    half = len(pairs) // 2
    for first in pairs[:half]:
        for second in pairs[half:]:
            one, other = (histograms.product((first[own], second[own])) for own in (0, 1))
            worst = max(worst, histograms.epsilon_of(delta, one, other, 2.0 * epsilon_0))
    kinds = {Kind(2, 0): 1, Kind(2, 1): 1}
    found, alike = upper(epsilon_0, categories, kinds, delta), lower_epsilon(epsilon_0, categories, kinds, delta)
    assert alike <= worst * (1.0 + 1e-7)
    assert worst <= found <= 2.0 * epsilon_0 * (1.0 + 1e-8)


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
@pytest.mark.parametrize("categories", [2, 3])
def test_several_reports_of_one_user_in_a_gap(categories: int, delta: float) -> None:
    """All histograms of two reports of u, alike or not, among three others."""
    epsilon_0, worst = 1.0, 0.0
    own = list(histograms.others(categories, 2))
    for held in histograms.others(categories, 3):
        laws = [histograms.histogram(epsilon_0, categories, (*held, *values)) for values in own]
        for one in laws:
            for other in laws:
                worst = max(worst, histograms.epsilon_of(delta, one, other, 2.0 * epsilon_0))
    assert worst <= upper(epsilon_0, categories, kinds_of(2, 3, 0), delta)


def test_more_gaps_tell_more_and_more_cover_less() -> None:
    base = {Kind(20, 0): 5}
    found = upper(1.0, 5, base, 1e-6)
    assert upper(1.0, 5, {Kind(20, 0): 6}, 1e-6) > found
    assert upper(1.0, 5, {Kind(25, 0): 5}, 1e-6) < found
    assert upper(1.0, 5, {Kind(20, 6): 5}, 1e-6) < found
    assert upper(1.0, 5, base, 1e-5) < found
    assert upper(1.1, 5, base, 1e-6) > found
    assert lower_epsilon(1.0, 5, base, 1e-6) < found


def test_users_are_answered_in_their_order() -> None:
    asked = [{Kind(5, 0): 2}, {}, {Kind(50, 3): 1, Kind(300, 0): 2}, {Kind(5, 0): 2}]
    together = upper_epsilons(1.0, 4, asked, 1e-6)
    assert together[1] == 0.0
    assert together[0] == together[3]
    for one, kinds in zip(together.tolist(), asked, strict=True):
        if kinds:
            assert one == pytest.approx(upper(1.0, 4, kinds, 1e-6), rel=5e-3)


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6])
def test_many_gaps_at_small_deltas(delta: float) -> None:
    kinds = {Kind(19, 0): 64}
    found, known = upper(1.0, 5, kinds, delta), lower_epsilon(1.0, 5, kinds, delta)
    assert 0.98 * found <= known <= found


def test_a_report_never_tells_more_than_its_own_epsilon() -> None:
    assert upper(1.0, 3, {Kind(0, 0): 7}, 1e-9) == pytest.approx(7.0, rel=1e-6)
    assert upper(1.0, 3, {Kind(0, 0): 7}, 1e-9) >= 7.0 - 1e-5
    assert lower_epsilon(1.0, 3, {Kind(0, 0): 7}, 1e-9) == pytest.approx(7.0, rel=0.02)


@pytest.mark.parametrize("delta", [1e-60, 1e-290, 5e-324])
def test_the_smallest_deltas_are_answered(delta: float) -> None:
    assert upper(1.0, 3, {Kind(10, 0): 3}, delta) == pytest.approx(3.0, rel=1e-6)
    assert 0.0 <= lower_epsilon(1.0, 3, {Kind(10, 0): 3}, delta) <= 3.0


@pytest.mark.parametrize(("epsilon_0", "count"), [(1e-6, 3), (50.0, 3), (700.0, 2), (10.0, 1000)])
def test_extreme_reports_are_answered(epsilon_0: float, count: int) -> None:
    found = upper(epsilon_0, 3, {Kind(10, 0): count}, 1e-9)
    assert 0.0 < found <= count * epsilon_0 * (1.0 + 1e-8)
    if epsilon_0 < 100.0:
        assert lower_epsilon(epsilon_0, 3, {Kind(10, 0): count}, 1e-9) <= found


def test_rounding_down_others_only_raises_it() -> None:
    exact = krr_shuffle(1.0, 3, 1024, 1e-6)[1]
    assert exact < upper(1.0, 3, {Kind(1023, 0): 1}, 1e-6) < exact * 1.02


def test_nothing_seen_tells_nothing() -> None:
    assert upper(1.0, 3, {}, 1e-6) == lower_epsilon(1.0, 3, Counter(), 1e-6) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_deltas_that_are_none_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        upper(1.0, 3, {Kind(3, 0): 1}, delta)
