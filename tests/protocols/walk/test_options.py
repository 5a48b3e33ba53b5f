"""The limit on visits, against exact laws of how often a walk comes to a user."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.protocols.walk.options import (
    CHANCE,
    OPTIONS,
    VISITS_MAX,
    WalkPart,
    complete_limit,
    contributions,
    course_of,
    graph_limit,
)
from p2pdp.protocols.walk.sums import PROTOCOL
from p2pdp.topology.graphs import make_graph
from tests.support.walk_world import sum_spec

RING, COMPLETE, PATH = sum_spec(n=5, laps=3), sum_spec(n=5, hops=7, tokens=2), sum_spec(n=5, hops=7, kind="path")


def test_order_steps_and_tokens_are_those_of_the_contract() -> None:
    found = [course_of(spec, 5, {}) for spec in (RING, COMPLETE, PATH)]
    assert [(course.order, course.steps, course.tokens) for course in found] == [
        ("ring", 15, 1),
        ("complete", 7, 2),
        ("graph", 7, 1),
    ]
    assert [contributions(spec) for spec in (RING, COMPLETE, PATH)] == [15, 14, 7]


def test_a_ring_follows_the_real_number_of_users_and_has_room_for_one_token_each() -> None:
    assert course_of(RING, 4, {}).steps == 12
    with pytest.raises(UsageError, match=r"^\[walk\] tokens"):
        course_of(sum_spec(n=5, laps=3, tokens=4), 3, {})


def test_the_limit_of_visits_is_computed_signed_or_none() -> None:
    assert course_of(RING, 5, {}).visits_max is None
    assert course_of(PATH, 5, {}).visits_max is None
    assert course_of(PATH, 5, {VISITS_MAX: 3}).visits_max == 3
    assert course_of(COMPLETE, 5, {VISITS_MAX: 3}).visits_max == complete_limit(5, 7, 2)
    signed = PROTOCOL.graph_facts(PATH, make_graph(PATH.graph, 5, 1))
    assert 1 <= int(signed[VISITS_MAX]) <= 7
    for spec in (RING, COMPLETE):
        assert PROTOCOL.graph_facts(spec, make_graph(spec.graph, 5, 1)) == {}


def test_what_a_node_limits_and_what_takes_time() -> None:
    assert PROTOCOL.sizes(COMPLETE) == {"hops": 7, "laps": None, "tokens": 2}
    assert [(work.key, work.actual) for work in PROTOCOL.work(RING, None)] == [("[walk] laps", 15)]
    assert [(work.key, work.actual) for work in PROTOCOL.work(COMPLETE, None)] == [
        ("[walk] hops", 14),
        ("[walk] tokens", 2),
    ]


def test_examples_differ_in_what_the_rules_look_at() -> None:
    assert {example.order for example in OPTIONS.examples} == {"ring", "random"}
    assert all(isinstance(example, WalkPart) for example in OPTIONS.examples)


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
