from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.privacy.shuffle.blanket import Window, binomial
from p2pdp.privacy.shuffle.krr import clones, krr_lower, krr_upper
from p2pdp.privacy.shuffle.overlap import hidden, overlapped, overlapped_worst, two_valued
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.overlap import overlaps_of_laws


def poisson_binomial(chances: list[float]) -> np.ndarray:
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1.0 - chance, chance])
    return law


@given(chances=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
@settings(max_examples=50)
def test_few_chances_are_convolved_exactly(chances: list[float]) -> None:
    found = hidden(np.array(chances), 1e-15)
    exact = poisson_binomial(chances)
    np.testing.assert_allclose(
        found.masses, exact[found.first : found.first + len(found.masses)], rtol=1e-9, atol=1e-14
    )
    assert 1.0 - found.masses.sum() <= 1e-12


def test_many_chances_are_rounded_down_and_little() -> None:
    chances = np.random.default_rng(3).uniform(0.1, 0.4, 5000)
    found = hidden(chances, 1e-15)
    exact = poisson_binomial(chances.tolist())
    below = np.concatenate((np.zeros(found.first), np.cumsum(found.masses)))
    assert np.all(below >= np.cumsum(exact)[: len(below)] - 1e-12), "fewer, in the stochastic order"
    mean = float(found.masses @ (found.first + np.arange(len(found.masses))))
    assert chances.sum() * 0.98 < mean <= chances.sum()


@pytest.mark.parametrize("epsilon_0", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("kappas", [[0.5, 0.9, 0.2], [1.0, 0.0, 0.3, 0.3, 0.7, 1.0], [0.4]])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.29])
def test_it_is_the_mixture_of_the_clones_pairs(epsilon_0: float, kappas: list[float], epsilon: float) -> None:
    told, total = 1.0 / (1.0 + math.exp(-epsilon_0)), 0.0
    chances = [kappa * math.exp(-epsilon_0) for kappa in kappas]
    for c, weight in enumerate(poisson_binomial(chances)):
        for seen in range(c + 2):
            up, down = (math.comb(c, seen - one) / 2.0**c if 0 <= seen - one <= c else 0.0 for one in (1, 0))
            p, q = told * up + (1.0 - told) * down, (1.0 - told) * up + told * down
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    lower, upper = two_valued(epsilon, hidden(np.array(chances), 1e-15), epsilon_0)
    assert lower <= total <= upper
    assert upper - lower <= 1e-8 * total


@pytest.mark.parametrize("categories", [None, 2, 3, 10])
@pytest.mark.parametrize("n", [5, 300, 3000])
def test_one_kappa_is_as_in_the_rooms_it_comes_from(categories: int | None, n: int) -> None:
    same = overlapped(1.0, np.full(n - 1, 0.8), 1e-6, categories)
    if categories is None:
        assert same == clones(1.0, n, 1e-6, 0.8)
    else:
        assert same[1] == krr_upper(1.0, categories, n, 1e-6, 0.8)
    nearly = np.full(n - 1, 0.8)
    nearly[0] = 0.8 - 1e-9
    upper = overlapped(1.0, nearly, 1e-6, categories)[1]
    assert same[1] * (1.0 - 2e-3) <= upper <= same[1] * 1.02


@given(
    epsilon_0=st.sampled_from([0.1, 1.0, 3.0]),
    n=st.sampled_from([3, 50, 700, 20_000]),
    categories=st.sampled_from([None, 2, 5]),
    delta=st.sampled_from([1e-3, 1e-6, 1e-10]),
    seed=st.integers(0, 9),
)
@settings(max_examples=15)
def test_it_lies_between_the_least_and_the_largest_kappa(
    epsilon_0: float, n: int, categories: int | None, delta: float, seed: int
) -> None:
    kappas = np.random.default_rng(seed).uniform(0.3, 0.95, n - 1)
    lower, upper = overlapped(epsilon_0, kappas, delta, categories)
    assert 0.0 <= lower <= upper <= epsilon_0 * (1.0 + 1e-12)
    worst = overlapped(epsilon_0, np.full(n - 1, kappas.min()), delta, categories)
    best = overlapped(epsilon_0, np.full(n - 1, kappas.max()), delta, categories)
    assert best[1] * (1.0 - 1e-3) - 1e-12 <= upper <= worst[1] * 1.02 + 1e-12
    if categories is not None:
        assert lower == pytest.approx(min(upper, krr_lower(epsilon_0, categories, n, delta)))


def test_known_answers_at_the_size_of_facebook_pages() -> None:
    assert overlapped(1.0, np.ones(22_469), 1e-6)[1] == pytest.approx(0.034, abs=5e-4)
    assert overlapped(1.0, np.full(22_469, 0.82), 1e-6)[1] == pytest.approx(0.038, abs=5e-4)
    spread = np.random.default_rng(1).uniform(0.82, 1.0, 22_469)
    assert 0.034 < overlapped(1.0, spread, 1e-6)[1] < 0.038


def test_a_million_users_close_to_the_mean() -> None:
    kappas = np.random.default_rng(1).uniform(0.7, 1.0, 999_999)
    lower, upper = overlapped(1.0, kappas, 1e-6)
    assert upper == pytest.approx(clones(1.0, 1_000_000, 1e-6, float(kappas.mean()))[1], rel=5e-3)
    assert lower <= upper


def views(truths: tuple[int, ...], gamma: float, laws: np.ndarray) -> dict[tuple[tuple[int, int], ...], float]:
    """The exact law of what the curator sees: which holder hands in which bits, in no order."""
    n, found = len(truths), {}
    for places in itertools.product(range(n), repeat=n):
        walked = math.prod(laws[j, i] for j, i in enumerate(places))
        if walked == 0.0:
            continue
        for said in itertools.product((0, 1), repeat=n):
            chance = walked * math.prod(
                1.0 - gamma / 2 if told == truth else gamma / 2 for told, truth in zip(said, truths, strict=True)
            )
            seen = tuple(sorted(zip(places, said, strict=True)))
            found[seen] = found.get(seen, 0.0) + chance
    return found


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("others", [(0, 0, 0), (1, 0, 1), (1, 1, 1)])
def test_it_bounds_all_that_the_curator_learns_on_a_small_graph(rounds: int, others: tuple[int, ...]) -> None:
    """Every place, load and answer of four users enumerated."""
    walk = walk_matrix(make_graph(GraphPart("path"), 4, 0), 0.4)
    laws, epsilon_0 = all_laws(walk, rounds), 1.0
    kappas = overlaps_of_laws(laws, rounds)
    gamma = 2.0 / (math.e + 1.0)
    p, q = views((0, *others), gamma, laws), views((1, *others), gamma, laws)
    for epsilon in (0.2, 0.5, 0.8):
        true = sum(max(0.0, p[seen] - math.exp(epsilon) * q.get(seen, 0.0)) for seen in p)
        law = hidden(np.delete(kappas[0], 0) * gamma, 1e-16)
        assert true <= two_valued(epsilon, law, epsilon_0)[1] * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("categories", [None, 4])
def test_one_upper_end_for_all_users(categories: int | None) -> None:
    walk = walk_matrix(make_graph(GraphPart("erdos_renyi", probability=0.3), 24, 5), 0.1)
    overlaps = overlaps_of_laws(all_laws(walk, 9), 9)
    lower, upper, user = overlapped_worst(1.0, overlaps, 1e-3, categories)
    each = [overlapped(1.0, np.delete(overlaps[u], u), 1e-3, categories) for u in range(24)]
    assert max(one[1] for one in each) <= upper * (1.0 + 1e-9)
    assert upper <= 1.1 * max(one[1] for one in each)
    assert lower == min(upper, each[user][0])
    assert overlapped_worst(1.0, np.ones((1, 1)), 1e-3)[:2] == clones(1.0, 1, 1e-3)


def test_what_is_not_handed_over_tells_nothing_for_certain() -> None:
    kappas = np.array([0.5, 0.6, 0.7])
    for some in (kappas, kappas[:1]):
        assert overlapped(1.0, some, 1e-3, 4, all_handed_over=False)[0] == 0.0
        assert overlapped(1.0, some, 1e-3, 4, all_handed_over=False)[1] == overlapped(1.0, some, 1e-3, 4)[1]


def test_few_different_kappas_of_many_users_are_exact() -> None:
    kappas = np.repeat([0.7, 0.9], 50_000)
    lower, upper = overlapped(1.0, kappas, 1e-6)
    assert lower == pytest.approx(upper, rel=1e-6)


def test_the_window_of_one_user_alone() -> None:
    assert overlapped(1.0, np.empty(0), 1e-6) == clones(1.0, 1, 1e-6)
    assert two_valued(2.0, Window(0, np.ones(1)), 1.0) == (0.0, 0.0)
    assert hidden(np.full(7, 0.5), 1e-15).masses == pytest.approx(binomial(7, 0.5, 1e-16).masses)


@pytest.mark.parametrize("kappas", [[1.1, 0.5], [-0.1, 0.5], [math.nan, 0.5], [[0.5, 0.2]]])
def test_impossible_kappas_are_refused(kappas: list[float]) -> None:
    with pytest.raises(UsageError, match="kappas"):
        overlapped(1.0, np.array(kappas), 1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        overlapped(1.0, np.array([0.4, 0.5]), delta)
