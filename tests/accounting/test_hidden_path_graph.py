from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from p2pdp.accounting.hidden_path_gaps import Gap, gaps_of
from p2pdp.accounting.hidden_path_graph import GRAPH_USERS_MAX, general_graph
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian

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
