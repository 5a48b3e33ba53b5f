"""Curves averaged over how often a user is visited: known answers, sound ends, nothing gained by merging."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.visits import (
    MARGIN,
    Law,
    binomial_visits,
    certain,
    cut_of,
    gaussian_epsilon,
    graph_visits,
    most_visits,
    printed_visits,
    pure_epsilon,
    sum_of,
)
from p2pdp.topology.graphs import make_graph


def test_known_answers() -> None:
    assert most_visits(100_000, 1000, 1e-7) == 156
    assert int(printed_visits(100_000, 1000, 1e-7) + 0.5) == 1655


@given(hops=st.integers(1, 10**6), n=st.integers(1, 10**5), power=st.floats(-12.0, -0.001))
def test_it_is_the_quantile(hops: int, n: int, power: float) -> None:
    delta_hat = 10.0**power
    found = most_visits(hops, n, delta_hat)
    assert 0 <= found <= hops
    assert binom.sf(found, hops, 1.0 / n) <= delta_hat
    assert found == 0 or binom.sf(found - 1, hops, 1.0 / n) > delta_hat * (1 - 1e-6)
    assert found <= printed_visits(hops, n, delta_hat) + 1, "Hoeffding's inequality, with room"


@pytest.mark.parametrize(("hops", "n"), [(1, 1), (7, 1), (1, 2), (1, 10**9), (10**12, 10**9)])
def test_extremes_are_answered(hops: int, n: int) -> None:
    for delta_hat in (1e-300, 1e-12, 0.5, math.nextafter(1.0, 0.0)):
        assert 0 <= most_visits(hops, n, delta_hat) <= hops
    assert most_visits(7, 1, 0.5) == 7


DELTA = 1e-6


@given(st.integers(1, 400), st.floats(0.01, 5.0))
def test_a_certain_number_of_visits_is_one_gaussian(count: int, mu: float) -> None:
    exact = gaussian.epsilon_of(DELTA, mu * math.sqrt(count))
    found = gaussian_epsilon(certain(count), mu, DELTA)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-6) + 1e-9


def test_the_known_gaussian_is_found() -> None:
    assert gaussian_epsilon(certain(1), 1.0, 1e-5) == pytest.approx(4.37717809568122, rel=1e-6)
    assert gaussian_epsilon(certain(16), 1.0 / 16, 1e-6) == pytest.approx(1.06070186232827, rel=1e-6)


@given(st.integers(2, 300), st.integers(2, 40), st.floats(0.02, 2.0))
def test_the_average_is_that_of_the_binomial_law(steps: int, n: int, mu: float) -> None:
    law = binomial_visits(steps, 1.0 / n, 0, DELTA)
    epsilon = gaussian_epsilon(law, mu, DELTA)
    counts = np.arange(steps + 1)
    chances = binom.pmf(counts, steps, 1.0 / n)

    def delta(at: float) -> float:
        return math.fsum(p * gaussian.delta_of(at, mu * math.sqrt(c)) for p, c in zip(chances, counts, strict=True))

    assert delta(epsilon) <= DELTA * (1 + 1e-9)
    if epsilon > 1e-3:
        assert delta(epsilon * (1 - 1e-5)) > DELTA * (1 - 1e-5)


@given(st.integers(1, 60), st.floats(0.05, 1.0), st.floats(1e-12, 1e-2))
def test_a_law_leaves_out_no_more_than_it_says(trials: int, chance: float, delta: float) -> None:
    law = binomial_visits(trials, chance, 1, delta)
    assert float(law.masses.sum()) + law.lost >= 1.0
    assert law.lost <= 2 * cut_of(delta)
    assert law.counts.min() >= 1
    assert law.mean == pytest.approx(1 + trials * chance, rel=1e-4)


def test_more_noise_and_more_delta_tell_less_and_more_visits_more() -> None:
    few, many = binomial_visits(100, 0.1, 0, DELTA), binomial_visits(200, 0.1, 0, DELTA)
    assert gaussian_epsilon(few, 0.1, DELTA) < gaussian_epsilon(few, 0.2, DELTA)
    assert gaussian_epsilon(few, 0.1, DELTA) < gaussian_epsilon(many, 0.1, DELTA)
    assert gaussian_epsilon(few, 0.1, 1e-3) < gaussian_epsilon(few, 0.1, DELTA)


def test_without_noise_everything_is_told_and_without_visits_nothing() -> None:
    assert gaussian_epsilon(certain(2), math.inf, DELTA) == math.inf
    assert gaussian_epsilon(certain(0), 1.0, DELTA) == 0.0
    assert gaussian_epsilon(certain(3), 0.0, DELTA) == 0.0
    assert gaussian_epsilon(Law(np.array([1.0]), np.array([1.0]), 2e-6), 1.0, DELTA) == math.inf


def test_pure_mechanisms_add_up_to_the_count_that_is_hardly_ever_exceeded() -> None:
    law = binomial_visits(500, 0.05, 0, DELTA)
    count = binom.isf(DELTA, 500, 0.05)
    assert pure_epsilon(law, 0.5, DELTA) == pytest.approx(0.5 * count, abs=0.51)
    assert binom.sf(round(pure_epsilon(law, 0.5, DELTA) / 0.5), 500, 0.05) <= DELTA
    assert pure_epsilon(certain(7), 0.5, 1e-300) == pytest.approx(3.5)
    assert pure_epsilon(certain(7), 0.0, DELTA) == 0.0
    assert pure_epsilon(Law(np.array([1.0]), np.ones(1), 1e-3), 0.5, DELTA) == math.inf


def test_sums_of_independent_counts_are_convolved() -> None:
    law = Law(np.array([1.0, 4.0]), np.array([0.5, 0.5]), 1e-9)
    summed = sum_of(law, 3)
    assert dict(zip(summed.counts.tolist(), summed.masses.tolist(), strict=True)) == {
        3.0: 0.125, 6.0: 0.375, 9.0: 0.375, 12.0: 0.125
    }  # fmt: skip
    assert summed.lost == pytest.approx(3e-9)
    assert sum_of(law, 1).counts.tolist() == [1.0, 4.0]


def test_merged_levels_are_rounded_up() -> None:
    law = Law(np.array([3.0, 90_001.0]), np.array([0.25, 0.75]))
    summed = sum_of(law, 2)
    assert summed.counts.tolist() >= [6.0, 90_004.0, 180_002.0]
    assert summed.counts[-1] <= 180_002 * 1.01
    assert summed.masses.tolist() == [0.0625, 0.375, 0.5625]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        binomial_visits(10, 0.1, 0, delta)


STEPS = 25


def counted(neighbours: Sequence[Sequence[int]], user: int, *, spread: bool) -> Floats:
    """The chances of 0, 1, ... visits, by the law of place and count after each step."""
    starts = neighbours[0] if spread else [0]
    law = np.zeros((len(neighbours), STEPS + 1))
    for start in starts:
        law[start, int(start == user)] += 1.0 / len(starts)
    for _ in range(STEPS - 1):
        after = np.zeros_like(law)
        for place, row in enumerate(neighbours):
            for to in row:
                moved = np.append(0.0, law[place, :-1]) if to == user else law[place]
                after[to] += moved / len(row)
        law = after
    found: Floats = law.sum(axis=0)
    return found


@pytest.mark.parametrize(
    "part",
    [
        GraphPart("path"),
        GraphPart("star"),
        GraphPart("grid", rows=2),
        GraphPart("regular", degree=3),
        GraphPart("complete"),
    ],
)
@pytest.mark.parametrize("spread", [False, True])
def test_the_law_is_the_one_counted_step_by_step(part: GraphPart, spread: bool) -> None:
    neighbours = make_graph(part, 6, 3).neighbours
    laws = graph_visits(neighbours, STEPS, 1, DELTA, spread=spread)
    for user, law in enumerate(laws):
        true = counted(neighbours, user, spread=spread)
        tails = np.cumsum(true[::-1])[::-1]
        ours = np.cumsum(law.masses[::-1])[::-1]
        assert np.all(ours >= tails[: len(ours)] - 1e-15)  # never fewer visits than there are
        assert np.all(ours <= tails[: len(ours)] + 3 * MARGIN)
        assert tails[len(ours) :].sum() == pytest.approx(0.0, abs=law.lost)


def test_several_tokens_are_independent() -> None:
    neighbours = make_graph(GraphPart("path"), 4, 0).neighbours
    one = counted(neighbours, 2, spread=True)
    both = np.convolve(one, one)
    law = graph_visits(neighbours, STEPS, 2, DELTA, spread=True)[2]
    assert law.counts.tolist() == list(range(len(law.counts)))
    assert law.masses == pytest.approx(both[: len(law.masses)], abs=1e-10)


def test_two_users_take_turns_and_one_stays_alone() -> None:
    laws = graph_visits([[1], [0]], 9, 1, DELTA, spread=False)
    for law, visits in zip(laws, (5, 4), strict=True):
        assert law.mean == pytest.approx(visits, abs=1e-8)
        assert law.masses[visits] == pytest.approx(1.0, abs=1e-9)
    alone = graph_visits([[]], 9, 2, DELTA, spread=True)
    assert (alone[0].counts.tolist(), alone[0].masses.tolist()) == ([18.0], [1.0])


def test_a_long_walk_is_near_its_stationary_law() -> None:
    neighbours = make_graph(GraphPart("complete"), 40, 0).neighbours
    law = graph_visits(neighbours, 4_000, 1, DELTA, spread=False)[7]
    assert law.mean == pytest.approx(100.0, rel=1e-3)
    # A walk that never stays where it is spreads its visits more evenly than independent choices.
    assert law.counts[-1] <= binom.isf(1e-12, 4_000, 1 / 40)
