"""The limit on visits, against exact laws of how often a walk comes to a user."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.protocols.walk.limits import CHANCE, complete_limit, graph_limit
from p2pdp.topology.graphs import make_graph


def tail(trials: int, chance: float, above: int) -> float:
    return math.fsum(
        math.comb(trials, count) * chance**count * (1.0 - chance) ** (trials - count)
        for count in range(above + 1, trials + 1)
    )


@pytest.mark.parametrize(("n", "steps", "tokens"), [(3, 60, 1), (8, 300, 1), (20, 100, 3), (2, 30, 1), (5, 9, 1)])
def test_on_the_complete_graph_it_is_the_quantile_of_the_binomial_law(n: int, steps: int, tokens: int) -> None:
    sure = 1 if tokens == 1 else 0
    found, trials = complete_limit(n, steps, tokens), steps * tokens - sure
    assert tail(trials, 1.0 / n, found - sure) <= CHANCE
    assert tail(trials, 1.0 / n, found - sure - 2) > CHANCE


def test_a_user_alone_contributes_at_every_step() -> None:
    assert complete_limit(1, 50, 2) == 100
    assert complete_limit(4, 1, 1) == 1


def visits_on(neighbours: tuple[tuple[int, ...], ...], steps: int, start: int, user: int) -> np.ndarray:
    """P(user is visited c times) by stepping the walk with its count."""
    n = len(neighbours)
    chances = np.zeros((n, steps + 1))
    chances[start, int(start == user)] = 1.0
    for _ in range(steps - 1):
        after = np.zeros_like(chances)
        for here, row in enumerate(neighbours):
            for there in row:
                moved = chances[here] / len(row)
                after[there] += np.concatenate([[0.0], moved[:-1]]) if there == user else moved
        chances = after
    return chances.sum(axis=0)


@pytest.mark.parametrize("kind", ["star", "ring", "path", "grid"])
@pytest.mark.parametrize("tokens", [1, 2])
def test_on_other_graphs_it_is_above_the_quantile_and_not_far(kind: str, tokens: int) -> None:
    n, steps = 9, 160
    graph = make_graph(GraphPart(kind), n, 0)
    found = graph_limit(graph.neighbours, steps, tokens)
    exact = 0
    for start, user in itertools.product(range(n) if tokens > 1 else [0], range(n)):
        law = visits_on(graph.neighbours, steps, start, user)
        for _ in range(tokens - 1):
            law = np.convolve(law, visits_on(graph.neighbours, steps, start, user))
        beyond = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)
        assert beyond[min(found, len(beyond) - 1)] <= CHANCE
        exact = max(exact, int(np.nonzero(beyond <= CHANCE)[0][0]))
    assert exact <= found <= 1.35 * exact


def test_where_it_is_not_computed_every_step_may_be_at_the_same_user() -> None:
    assert graph_limit([[1], [0]] * 600, 50, 2) == 100
    assert graph_limit([[]], 50, 1) == 50
