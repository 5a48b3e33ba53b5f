from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.privacy.shuffle.krr import clones, krr_lower, krr_shuffle, krr_upper, local_epsilon
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
    """[BBGN19, Theorem 5.1] against all data and all outcomes of small shuffles."""
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
    monkeypatch.setattr("p2pdp.privacy.shuffle.krr._LISTED_MAX", 0)
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


@pytest.mark.parametrize(
    ("asked", "bracket"),
    [((4.0, 100_000, 1e-6), (0.167458, 0.172434)), ((1.0, 1000, 1e-6), (0.182408, 0.190245))],
)
def test_they_lie_within_the_brackets_of_the_authors_code(
    asked: tuple[float, int, float], bracket: tuple[float, float]
) -> None:
    lower, upper = clones(*asked)
    assert bracket[0] <= lower <= upper <= bracket[1]
    assert upper - lower <= 2e-8 * upper


@pytest.mark.parametrize(("kappa", "known"), [(1.0, 0.034), (0.82, 0.038)])
def test_known_answers_of_network_shuffling(kappa: float, known: float) -> None:
    assert clones(1.0, 22470, 1e-6, kappa)[1] == pytest.approx(known, abs=5e-4)


def by_hand(epsilon: float, epsilon_0: float, n: int) -> float:
    """Return the hockey-stick divergence of the pair as [FMT21, Theorem 3.1] states it, (A + D, C - A + 1 - D)."""
    chance, told = math.exp(-epsilon_0), 1.0 / (1.0 + math.exp(-epsilon_0))
    total = 0.0
    for c in range(n):
        weight = math.comb(n - 1, c) * chance**c * (1.0 - chance) ** (n - 1 - c)
        for first in range(c + 2):
            up, down = (math.comb(c, first - one) / 2.0**c if 0 <= first - one <= c else 0.0 for one in (1, 0))
            p, q = told * up + (1.0 - told) * down, (1.0 - told) * up + told * down
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon_0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-7])
def test_they_are_the_theorems_pair(n: int, epsilon_0: float, delta: float) -> None:
    """[FMT21, Theorem 3.1]: both ends are those of its pair."""
    lower, upper = clones(epsilon_0, n, delta)
    assert by_hand(upper, epsilon_0, n) <= delta * (1.0 + 1e-9)
    if lower > 0.0:
        assert by_hand(lower, epsilon_0, n) >= delta * (1.0 - 1e-9)
    else:
        assert upper == 0.0


@pytest.mark.parametrize("epsilon_0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("categories", "n"), [(2, 5), (3, 4), (4, 3)])
def test_the_theorems_pair_tells_no_less_than_a_shuffle(epsilon_0: float, categories: int, n: int) -> None:
    """[FMT21, Theorem 3.1] on randomized response, with all data of the others and all outcomes."""
    for held in histograms.others(categories, n - 1):
        one, other = (histograms.histogram(epsilon_0, categories, (*held, own)) for own in (0, 1))
        for epsilon in (0.0, 0.2 * epsilon_0, 0.7 * epsilon_0):
            assert histograms.delta(epsilon, one, other) <= by_hand(epsilon, epsilon_0, n) + 1e-12


@given(
    epsilon_0=st.floats(math.log(1e-6), math.log(50.0)).map(math.exp),
    n=st.floats(0.0, math.log(1e6)).map(lambda log: round(math.exp(log))),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    kappa=st.floats(0.0, 1.0),
)
@settings(max_examples=30, deadline=None)
def test_they_are_sound_and_monotone(epsilon_0: float, n: int, delta: float, kappa: float) -> None:
    lower, upper = clones(epsilon_0, n, delta, kappa)
    assert 0.0 <= lower <= upper <= epsilon_0
    assert upper - lower <= 1e-6 * upper + 1e-13
    room = 1.0 + 1e-6
    assert clones(epsilon_0, 2 * n, delta, kappa)[1] <= upper * room + 1e-15
    assert clones(epsilon_0, n, 2.0 * delta, kappa)[1] <= upper * room + 1e-15
    assert upper <= clones(epsilon_0, n, delta, kappa / 2.0)[1] * room + 1e-15
    assert upper <= clones(1.2 * epsilon_0, n, delta, kappa)[1] * room + 1e-15


def test_who_is_alone_is_not_hidden() -> None:
    assert clones(1.0, 1, 0.1)[1] == pytest.approx(local_epsilon(1.0, 2, 0.1))
    assert clones(1.0, 1000, 0.1, 0.0)[1] == pytest.approx(local_epsilon(1.0, 2, 0.1))


def test_two_categories_have_a_larger_blanket_than_clones() -> None:
    """A uniform answer has the chance 2/(e^epsilon_0 + 1), a clone only e^-epsilon_0."""
    for n in (10, 1000, 100_000):
        assert krr_upper(1.0, 2, n, 1e-6) < clones(1.0, n, 1e-6)[0]


@pytest.mark.parametrize("wrong", [(0.0, 5, 0.1), (1.0, 0, 0.1), (1.0, 5, 0.0), (1.0, 5, 1.0), (1.0, 5, 0.1, 1.1)])
def test_impossible_questions_are_refused_clones(wrong: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        clones(*wrong)  # type: ignore[arg-type]
