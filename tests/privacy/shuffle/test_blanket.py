from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.privacy.shuffle.blanket import (
    Reports,
    binomial,
    lower_outcomes,
    points,
    two_valued_outcomes,
    upper_outcomes,
)
from tests.support import histograms

EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.2, 2.5)
CUT = 1e-20
MANY = 1000


@pytest.mark.parametrize("epsilon_0", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(
    ("categories", "number", "dummies"), [(2, 5, 0), (2, 3, 3), (3, 4, 0), (3, 0, 3), (3, 3, 2), (4, 3, 1), (5, 2, 2)]
)
def test_it_holds_for_any_data_of_the_others(epsilon_0: float, categories: int, number: int, dummies: int) -> None:
    """[BBGN19, Lemma 5.2] and [BBGN19, Lemma 5.3], with dummies, against all data and all outcomes."""
    reports = Reports.of(epsilon_0, categories, number, dummies)
    upper = upper_outcomes(reports, CUT, MANY)
    worst = dict.fromkeys(EPSILONS, 0.0)
    for held in histograms.others(categories, number):
        one, other = (histograms.histogram(epsilon_0, categories, (*held, own), dummies) for own in (0, 1))
        for epsilon in EPSILONS:
            both = max(histograms.delta(epsilon, one, other), histograms.delta(epsilon, other, one))
            worst[epsilon] = max(worst[epsilon], both)
    lower = lower_outcomes(reports, CUT) if categories > 2 else two_valued_outcomes(reports, number, CUT)
    for epsilon in EPSILONS:
        assert lower.delta(epsilon) <= worst[epsilon] + 1e-13
        assert worst[epsilon] <= upper.delta(epsilon) + 1e-13


@pytest.mark.parametrize("epsilon_0", [0.3, 2.0])
@pytest.mark.parametrize(("categories", "number", "dummies"), [(3, 5, 0), (3, 3, 2), (4, 4, 1), (5, 3, 0), (3, 0, 0)])
def test_the_lower_end_is_what_is_told_where_all_others_hold_a_third_value(
    epsilon_0: float, categories: int, number: int, dummies: int
) -> None:
    lower = lower_outcomes(Reports.of(epsilon_0, categories, number, dummies), CUT)
    one, other = (histograms.histogram(epsilon_0, categories, (*[2] * number, own), dummies) for own in (0, 1))
    for epsilon in EPSILONS:
        assert lower.delta(epsilon) == pytest.approx(histograms.delta(epsilon, one, other), abs=1e-14)


@pytest.mark.parametrize("holders", [0, 2, 5])
@pytest.mark.parametrize("dummies", [0, 2])
def test_two_categories_are_told_as_the_others_hold_them(holders: int, dummies: int) -> None:
    outcomes = two_valued_outcomes(Reports.of(1.3, 2, 5, dummies), holders, CUT)
    held = [0] * holders + [1] * (5 - holders)
    one, other = (histograms.histogram(1.3, 2, (*held, own), dummies) for own in (0, 1))
    for epsilon in EPSILONS:
        assert outcomes.delta(epsilon) == pytest.approx(histograms.delta(epsilon, one, other), abs=1e-14)


@given(
    epsilon_0=st.floats(1e-6, 30.0),
    categories=st.integers(2, 12),
    number=st.integers(0, 60),
    dummies=st.integers(0, 20),
)
@settings(max_examples=40)
def test_more_others_more_dummies_and_less_epsilon_tell_less(
    epsilon_0: float, categories: int, number: int, dummies: int
) -> None:
    found = upper_outcomes(Reports.of(epsilon_0, categories, number, dummies), CUT, MANY)
    for changed in (
        Reports.of(epsilon_0, categories, number + 1, dummies),
        Reports.of(epsilon_0, categories, number, dummies + 1),
        Reports.of(epsilon_0 / 1.5, categories, number, dummies),
    ):
        less = upper_outcomes(changed, CUT, MANY)
        for epsilon in (0.0, epsilon_0 / 4, epsilon_0 / 2, epsilon_0 * 0.9):
            assert less.delta(epsilon) <= found.delta(epsilon) * (1.0 + 1e-9) + 1e-15
    assert found.delta(epsilon_0 * (1.0 + 1e-9)) <= 1e-9 * epsilon_0
    assert found.lost < 1e-18


@pytest.mark.parametrize("categories", [2, 3, 7])
def test_blocks_only_raise_it(categories: int) -> None:
    reports = Reports.of(1.0, categories, 200, 5)
    exact = upper_outcomes(reports, CUT, MANY)
    before = math.inf
    for blocks in (1, 10, 50):
        found = upper_outcomes(reports, CUT, blocks).delta(0.1)
        assert exact.delta(0.1) <= found <= before
        before = found
    assert before < 1.1 * exact.delta(0.1)


@pytest.mark.parametrize("reports", [Reports.of(1.0, 3, 40, 3), Reports.of(2.0, 2, 30), Reports.of(0.1, 50, 10, 4)])
def test_all_mass_is_there(reports: Reports) -> None:
    """P and Q are symmetric, so twice what is listed of both is what is not a tie, and a lone report is never one."""
    found = upper_outcomes(reports, CUT, MANY)
    assert float((found.excess + 2.0 * found.base).sum()) <= 1.0 + 1e-12
    alone = upper_outcomes(Reports.of(1.0, 3, 0), CUT, MANY)
    told = 1.0 - 1.0 / (math.e + 2.0)
    assert float((alone.excess + 2.0 * alone.base).sum()) == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize(("trials", "chance"), [(0, 0.3), (1, 0.5), (40, 0.02), (300, 0.7), (5, 0.0), (5, 1.0)])
def test_binomial_windows(trials: int, chance: float) -> None:
    law = binomial(trials, chance, 1e-15)
    for count in range(trials + 1):
        place = count - law.first
        exact = math.comb(trials, count) * chance**count * (1.0 - chance) ** (trials - count)
        found = law.masses[place] if 0 <= place < len(law.masses) else 0.0
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize(("trials", "chance", "cut"), [(10**6, 0.4, 1e-20), (10**9, 1e-9, 1e-12), (10**8, 1e-3, 1e-16)])
def test_windows_of_many_trials_have_the_right_moments(trials: int, chance: float, cut: float) -> None:
    law = binomial(trials, chance, cut)
    counts = law.first + np.arange(len(law.masses))
    mean = float(counts @ law.masses)
    assert mean == pytest.approx(trials * chance, rel=1e-9)
    variance = float((counts - mean) ** 2 @ law.masses)
    assert variance == pytest.approx(trials * chance * (1.0 - chance), rel=1e-6)
    assert law.masses[0] < 10 * cut or law.first == 0


def test_the_number_of_outcomes_is_foreseen() -> None:
    for reports in (Reports.of(1.0, 10, 100), Reports.of(2.0, 5, 300), Reports.of(1.0, 2, 500)):
        listed = len(upper_outcomes(reports, 1e-16, MANY).base)
        assert listed / 2 < points(reports, 1e-16, MANY) < 4 * listed


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 3, 1), (math.nan, 3, 1), (701.0, 3, 1), (1.0, 1, 1), (1.0, 3, -1), (1.0, 3, 1, -1), (1.0, 3, 1, 0, 1.5)],
)
def test_impossible_reports_are_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        Reports.of(*wrong)  # type: ignore[arg-type]


def test_two_categories_have_no_third_value() -> None:
    with pytest.raises(UsageError, match="third"):
        lower_outcomes(Reports.of(1.0, 2, 5), CUT)


SAMPLES = 200_000


def test_counting_blankets_by_hand_agrees() -> None:
    """The masses of the upper pair by drawing them: M - 1 = dummies + Bin(others, gamma), then a multinomial."""
    reports = Reports.of(1.0, 3, 6, 2)
    random = np.random.default_rng(5)
    elements = 1 + reports.dummies + random.binomial(reports.others, reports.gamma, SAMPLES)
    counts = random.multinomial(elements, [1 / 3] * 3)
    a, b = (reports.gamma + reports.kept * 3 * counts[:, one] / elements for one in (0, 1))
    drawn = np.maximum(a - math.exp(0.2) * b, 0.0)
    deviation = float(drawn.std()) / math.sqrt(SAMPLES)
    expected = upper_outcomes(reports, CUT, MANY).delta(0.2)
    assert abs(float(drawn.mean()) - expected) < 5.1 * deviation  # wrong once in three million seeds
    assert len(Counter(elements.tolist())) > 5
