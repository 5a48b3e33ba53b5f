from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.hidden_path.gaps import Gap, Stretch, gaps_of
from p2pdp.privacy.hidden_path.graph import GRAPH_USERS_MAX, GraphLaws, general_graph

HOUSE = ((1, 2, 5), (0, 2, 3), (0, 1, 3, 4), (1, 2, 4), (2, 3, 5), (0, 4))
SQUARE = ((1, 3), (0, 2), (1, 3), (0, 2))


def walked(graph: Any, steps: int, seed: int, tokens: int = 1) -> tuple[list[list[int]], list[list[Gap]]]:
    """Paths, and what each user knows of them."""
    random = np.random.default_rng(seed)
    paths = []
    for _ in range(tokens):
        path = [0 if tokens == 1 else int(random.choice(graph[0]))]
        while len(path) < steps:
            path.append(int(random.choice(graph[path[-1]])))
        paths.append(path)
    gaps = []
    for observer in range(len(graph)):
        seen = [
            [(at + 1, path[at - 1] if at else None, path[at + 1] if at + 1 < steps else None)
             for at in range(steps) if path[at] == observer]
            for path in paths
        ]  # fmt: skip
        starters = [path[0] if tokens == 1 or observer == 0 else None for path in paths]
        gaps.append(gaps_of(seen, steps, starters))
    return paths, gaps


def fitting_paths(graph: Any, observer: int, path: list[int]) -> list[tuple[list[int], float]]:
    """All paths that the observer cannot tell from this one, each with its probability given that."""

    def seen(one: tuple[int, ...]) -> list[tuple[int, int, int]]:
        padded = (-1, *one, -1)
        return [padded[at : at + 3] for at in range(len(one)) if one[at] == observer or padded[at + 1] == observer]

    def at(one: tuple[int, ...]) -> tuple[Any, Any]:
        return seen(one), [place for place, user in enumerate(one) if user == observer]

    truth, found = at(tuple(path)), []

    def go(one: tuple[int, ...], weight: float) -> None:
        if len(one) == len(path):
            if at(one) == truth:
                found.append((list(one), weight))
            return
        for to in graph[one[-1]]:
            if (to == observer) == (path[len(one)] == observer):
                go((*one, to), weight / len(graph[one[-1]]))

    go((path[0],), 1.0)
    total = sum(weight for _, weight in found)
    return [(one, weight / total) for one, weight in found]


def square_of(path: list[int], user: int, observer: int) -> float:
    ends = [-1, *(at for at, one in enumerate(path) if one == observer), len(path)]
    return sum(path[begin + 1 : end].count(user) ** 2 / max(end - begin - 1, 1)
               for begin, end in itertools.pairwise(ends))  # fmt: skip


@pytest.mark.parametrize(("graph", "steps"), [(SQUARE, 13), (HOUSE, 9)])
def test_upper_ends_are_averages_over_all_paths_that_fit_the_view(graph: Any, steps: int) -> None:
    """Delta given the view is at most the average of those given the path; the upper end is this average."""
    mu, delta = 0.7, 1e-4
    (path,), gaps = walked(graph, steps, 5)
    ends = general_graph(graph, gaps, mu, mu, delta)
    for user, observer in itertools.permutations(range(len(graph)), 2):
        mus = [(mu * math.sqrt(square_of(one, user, observer)), weight)
               for one, weight in fitting_paths(graph, observer, path)]  # fmt: skip
        epsilon = float(ends.upper[user, observer])
        for at, holds in ((epsilon, True), (epsilon * 0.98, epsilon == 0.0)):
            average = sum(weight * gaussian.delta_of(at, one) for one, weight in mus)
            assert (average <= delta * (1 + 1e-9)) == holds
        variation = sum(weight * math.erf(one / math.sqrt(8.0)) for one, weight in mus)
        assert variation <= ends.variation[user, observer] <= variation * 1.01 + 1e-9


@pytest.mark.parametrize("tokens", [1, 3])
def test_the_lower_end_is_that_of_the_worst_pair(tokens: int) -> None:
    _, gaps = walked(HOUSE, 60, 2, tokens)
    ends = general_graph(HOUSE, gaps, 0.4, 0.3999, 1e-5)
    worst = int(np.nanargmax(ends.upper))
    assert np.isnan(np.diag(ends.upper)).all()
    assert np.nonzero(~np.isnan(ends.lower.ravel()))[0].tolist() == [worst]
    assert 0.7 * ends.upper.ravel()[worst] < ends.lower.ravel()[worst] <= ends.upper.ravel()[worst]


def test_where_the_path_is_known_both_ends_meet() -> None:
    """A token between two users: user 1 of a path of three sees each contribution of its neighbours by itself."""
    line = ((1,), (0, 2), (1,))
    (path,), gaps = walked(line, 40, 1)
    ends = general_graph(line, gaps, 0.3, 0.3, 1e-6)
    for user in (0, 2):
        exact = gaussian.epsilon_of(1e-6, 0.3 * math.sqrt(square_of(path, user, 1)))
        assert exact <= ends.upper[user, 1] <= exact * 1.01


def test_more_noise_and_a_larger_delta_tell_less() -> None:
    _, gaps = walked(HOUSE, 80, 3)
    off = ~np.eye(6, dtype=bool)
    for less, more in (((0.1, 1e-6), (0.2, 1e-6)), ((0.2, 1e-3), (0.2, 1e-6)), ((0.2, 1e-6), (0.2, 1e-11))):
        one, two = (general_graph(HOUSE, gaps, mu, mu, delta).upper for mu, delta in (less, more))
        assert np.all(one[off] < two[off])


def test_the_smallest_graphs_are_answered() -> None:
    pair = ((1,), (0,))
    (path,), gaps = walked(pair, 7, 1)
    ends = general_graph(pair, gaps, 0.5, 0.5, 1e-6)
    exact = gaussian.epsilon_of(1e-6, 0.5 * math.sqrt(square_of(path, 0, 1)))
    assert exact <= ends.upper[0, 1] <= exact * 1.01
    assert general_graph(pair, [[], []], 0.5, 0.5, 1e-6).upper[0, 1] == 0.0
    assert general_graph(pair, gaps, 0.0, 0.0, 1e-6).upper[0, 1] == 0.0
    assert general_graph(((),), [[]], 0.5, 0.5, 1e-6).upper.shape == (1, 1)


def test_graphs_that_take_too_long_are_refused() -> None:
    n = GRAPH_USERS_MAX + 1
    with pytest.raises(UsageError, match=f"up to {GRAPH_USERS_MAX} users"):
        general_graph([[0]] * n, [[]] * n, 0.5, 0.5, 1e-6)


STAR = ((1, 2, 3), (0,), (0,), (0,))
CUT = 1e-13


def enumerated(graph: Any, observer: int, stretch: Stretch, spreader: int) -> Any:
    """P(c >= k) for each user, from every path with its probability."""
    n = len(graph)
    starts = [stretch.first] if stretch.first is not None else [one for one in graph[spreader] if one != observer]
    weights: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    for start in starts:
        weights[start, tuple(int(user == start) for user in range(n))] += 1.0
    for _ in range(stretch.length - 1):
        following: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
        for (at, counts), weight in weights.items():
            for to in graph[at]:
                if to != observer:
                    more = tuple(count + (user == to) for user, count in enumerate(counts))
                    following[to, more] += weight / len(graph[at])
        weights = following
    law = np.zeros((n, stretch.length + 1))
    for (at, counts), weight in weights.items():
        if stretch.last in (None, at):
            law[range(n), counts] += weight
    law /= law[0].sum()
    return np.cumsum(law[:, ::-1], axis=1)[:, ::-1]


def assert_same(laws: GraphLaws, gap: tuple[Stretch, ...], tails: Any) -> None:
    found = laws.tails(gap)
    margin = laws.margin(gap)
    assert margin < 1e-11
    width = found.shape[1]
    np.testing.assert_allclose(found, tails[laws.others][:, :width], atol=margin)
    assert tails[laws.others][:, width:].max(initial=0.0) <= margin


@given(st.data())
def test_tails_are_those_of_all_paths(data: st.DataObject) -> None:
    graph, observer, spreader = data.draw(st.sampled_from([(HOUSE, 3, 0), (HOUSE, 0, 2), (SQUARE, 2, 1)]))
    others = st.sampled_from([user for user in range(len(graph)) if user != observer])
    stretch = Stretch(data.draw(st.integers(1, 8)), *(data.draw(st.none() | others) for _ in range(2)))
    try:
        tails = enumerated(graph, observer, stretch, spreader)
    except (ZeroDivisionError, FloatingPointError, RuntimeWarning):  # there is no such path
        return
    assert_same(GraphLaws(graph, observer, spreader, CUT), (stretch,), tails)


def test_stretches_that_are_seen_as_one_sum_add_up() -> None:
    stretches = (Stretch(3, 1, None), Stretch(4, 2, None), Stretch(1, 4, None))
    each = [-np.diff(enumerated(HOUSE, 3, one, 0), axis=1, append=0.0) for one in stretches]
    law = [np.convolve(np.convolve(one, two), three) for one, two, three in zip(*each, strict=True)]
    tails = np.cumsum(np.array(law)[:, ::-1], axis=1)[:, ::-1]
    assert_same(GraphLaws(HOUSE, 3, 0, CUT), stretches, tails)


@pytest.mark.parametrize("length", [31, 32, 33, 200, 1000])
def test_long_stretches_agree_with_the_matrix_recursion(length: int) -> None:
    """Row c of `weights` holds the paths with c visits to user 1 so far, by where they are."""
    observer, user = 3, 1
    weights = np.zeros((length + 2, 6))
    weights[0, 4] = 1.0
    for _ in range(length - 1):
        moved = np.zeros_like(weights)
        for at in range(6):
            for to in set(HOUSE[at]) - {observer}:
                moved[:, to] += weights[:, at] / len(HOUSE[at])
        moved[1:, user] = moved[:-1, user].copy()
        moved[0, user] = 0.0
        weights = moved / moved.sum()
    law = weights[:, 2] / weights[:, 2].sum()
    laws = GraphLaws(HOUSE, observer, 0, CUT)
    gap = (Stretch(length, 4, 2),)
    tails = laws.tails(gap)[laws.others.index(user)]
    np.testing.assert_allclose(tails, np.cumsum(law[::-1])[::-1][: len(tails)], atol=laws.margin(gap))


def test_alone_between_visits_of_the_centre_a_leaf_is_known() -> None:
    laws = GraphLaws(STAR, 0, 0, CUT)
    assert laws.tails((Stretch(1, 2, 2),)).tolist() == [[1, 0], [1, 1], [1, 0]]
    np.testing.assert_allclose(laws.tails((Stretch(1, None, None),)), [[1, 1 / 3]] * 3)


def test_what_cannot_have_happened_is_not_told_from_rounding() -> None:
    """A stretch that no path fits, on a graph with two colours: everything is left open."""
    laws = GraphLaws(SQUARE, 2, 0, CUT)
    assert laws.margin((Stretch(2, 1, 3),)) == 1.0
