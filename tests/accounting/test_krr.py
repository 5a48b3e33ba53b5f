from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.accounting.krr import krr_lower, krr_shuffle, krr_upper, local_epsilon
from p2pdp.core.errors import UsageError
from tests.support import histograms


@pytest.mark.parametrize(
    ("asked", "lower", "upper"),
    [
        ((1.0, 10, 100, 1e-5), 0.22997, 0.23072),
        ((2.0, 5, 300, 1e-6), 0.64103, 0.64282),
    ],
)
def test_known_answers(asked: tuple[float, int, int, float], lower: float, upper: float) -> None:
    found = krr_shuffle(*asked)
    assert found[0] == pytest.approx(lower, abs=5.1e-6)
    assert found[1] == pytest.approx(upper, abs=5.1e-6)


def test_a_large_shuffle_of_ten_categories() -> None:
    lower, upper = krr_shuffle(1.0, 10, 1000, 1e-6)
    assert upper == pytest.approx(0.08016, abs=5.1e-6)
    assert lower == pytest.approx(upper, rel=1e-3)


def test_two_categories_with_identical_others() -> None:
    lower, upper = krr_shuffle(1.0, 2, 1000, 1e-6)
    assert lower == pytest.approx(0.126614, abs=5.1e-7)
    assert upper == pytest.approx(0.148671, abs=5.1e-7)


@pytest.mark.parametrize(("categories", "n"), [(2, 4), (3, 4), (4, 3), (3, 1), (2, 1)])
@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-4, 1e-9])
def test_it_encloses_the_worst_of_all_data(categories: int, n: int, delta: float) -> None:
    epsilon_0, worst = 1.2, 0.0
    for held in histograms.others(categories, n - 1):
        one, other = (histograms.histogram(epsilon_0, categories, (*held, own)) for own in (0, 1))
        for pair in ((one, other), (other, one)):
            worst = max(worst, histograms.epsilon_of(delta, *pair, epsilon_0))
    lower, upper = krr_shuffle(epsilon_0, categories, n, delta)
    assert lower <= worst * (1.0 + 1e-7) + 1e-12
    assert worst <= upper * (1.0 + 1e-7) + 1e-12


@given(
    epsilon_0=st.floats(math.log(1e-6), math.log(50.0)).map(math.exp),
    categories=st.sampled_from([2, 3, 10, 1000]),
    n=st.floats(0.0, math.log(1e6)).map(lambda log: round(math.exp(log))),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
)
@settings(max_examples=20, deadline=None)
def test_it_is_sound_and_falls_with_n_and_delta(epsilon_0: float, categories: int, n: int, delta: float) -> None:
    lower, upper = krr_shuffle(epsilon_0, categories, n, delta)
    assert 0.0 <= lower <= upper <= epsilon_0
    room = 1.0 + 2e-3  # the grid of large sums is not the same for all
    assert krr_upper(epsilon_0, categories, 2 * n, delta) <= upper * room + 1e-15
    assert krr_upper(epsilon_0, categories, n, delta * 2.0) <= upper * room + 1e-15
    assert upper <= krr_upper(epsilon_0 * 1.2, categories, n, delta) * room + 1e-15


@pytest.mark.parametrize("categories", [3, 10])
def test_small_and_large_shuffles_are_summed_alike(categories: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 1.0, categories, 150, 1e-7
    listed = krr_shuffle(*asked)
    monkeypatch.setattr("p2pdp.accounting.krr._LISTED_MAX", 0)
    summed = krr_shuffle(*asked)
    assert listed[1] * (1.0 - 1e-9) <= summed[1] <= listed[1] * (1.0 + 1e-4)
    assert listed[0] * (1.0 - 1e-2) <= summed[0] <= listed[0] * (1.0 + 1e-7)


def test_alone_a_report_is_what_it_is() -> None:
    for delta in (1e-12, 1e-3, 0.2, 0.9):
        expected = local_epsilon(1.0, 4, delta)
        assert krr_upper(1.0, 4, 1, delta) == pytest.approx(expected, rel=1e-9)
        assert krr_lower(1.0, 4, 1, delta) == pytest.approx(expected, rel=1e-7)
        assert krr_upper(1.0, 4, 500, delta, kappa=0.0) == pytest.approx(expected, rel=1e-9)
        other = 1.0 / (math.e + 3.0)
        left = (math.e - math.exp(expected)) * other
        assert left == pytest.approx(delta) or (expected == 0.0 and left < delta)


def test_less_overlap_tells_more() -> None:
    found = [krr_upper(1.0, 5, 300, 1e-6, kappa) for kappa in (1.0, 0.8, 0.4, 0.05, 0.0)]
    assert found == sorted(found)
    assert found[-1] > 0.999


@pytest.mark.parametrize(("categories", "n"), [(2, 1000), (3, 100), (5, 10**6)])
@pytest.mark.parametrize("delta", [1e-300, 5e-324])
def test_the_smallest_deltas_are_answered(categories: int, n: int, delta: float) -> None:
    lower, upper = krr_shuffle(1.0, categories, n, delta)
    assert 0.0 <= lower <= upper <= 1.0


def test_large_epsilons_leave_nothing_hidden() -> None:
    lower, upper = krr_shuffle(50.0, 10, 10**6, 1e-12)
    assert 49.9 < lower <= upper <= 50.0


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 3, 5, 0.1), (1.0, 1, 5, 0.1), (1.0, 3, 0, 0.1), (1.0, 3, 5, 0.0), (1.0, 3, 5, 1.0), (math.nan, 3, 5, 0.1)],
)
def test_impossible_questions_are_refused(wrong: tuple[float, int, int, float]) -> None:
    with pytest.raises(UsageError):
        krr_shuffle(*wrong)
