"""The random kinds: what they draw, how often, and from which numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import Graph, graph_of_edges, make_graph
from p2pdp.topology.random_graphs import RANDOM_KINDS, close_pairs, draw_edges


def drawn(part: GraphPart, n: int, seed: int, attempt: int = 0) -> Graph:
    edges, _ = draw_edges(part, n, seed, attempt)
    return graph_of_edges(n, edges)


@pytest.mark.parametrize("kind", sorted(RANDOM_KINDS))
def test_a_draw_depends_on_seed_and_attempt_and_nothing_else(kind: str) -> None:
    part = GraphPart(kind, degree=4 if kind == "regular" else None)
    assert drawn(part, 50, 1) == drawn(part, 50, 1)
    assert len({drawn(part, 50, seed, attempt).digest for seed in range(3) for attempt in range(3)}) == 9


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.9])
def test_erdos_renyi_chooses_every_pair_with_its_probability(probability: float) -> None:
    n, draws = 12, 400
    counts = np.zeros((n, n))
    for seed in range(draws):
        for u, v in drawn(GraphPart("erdos_renyi", probability=probability), n, seed).edges():
            counts[u, v] += 1
    pairs = counts[np.triu_indices(n, 1)]
    deviation = math.sqrt(draws * probability * (1 - probability))
    assert np.all(np.abs(pairs - draws * probability) < 6 * deviation)
    assert abs(pairs.sum() - len(pairs) * draws * probability) < 6 * deviation * math.sqrt(len(pairs))


def test_erdos_renyi_edge_counts_vary_like_a_binomial() -> None:
    n, probability, draws = 40, 0.2, 500
    pairs = n * (n - 1) // 2
    counts = [drawn(GraphPart("erdos_renyi", probability=probability), n, seed).edge_count for seed in range(draws)]
    assert 0.75 < np.var(counts) / (pairs * probability * (1 - probability)) < 1.33


def test_erdos_renyi_with_probability_one_is_complete() -> None:
    assert drawn(GraphPart("erdos_renyi", probability=1.0), 9, 1) == make_graph(GraphPart("complete"), 9, 1)


def test_geometric_links_exactly_the_points_within_the_radius() -> None:
    graph = make_graph(GraphPart("geometric", radius=0.4), 60, 7)
    distances = np.linalg.norm(graph.positions[:, None] - graph.positions[None], axis=2)
    near = {(u, v) for u in range(60) for v in range(u + 1, 60) if distances[u, v] <= 0.4}
    assert set(graph.edges()) == near
    assert graph.positions.shape == (60, 2)
    assert np.all((graph.positions >= 0) & (graph.positions < 1))


@given(
    n=st.integers(1, 90), radius=st.sampled_from([1e-9, 0.01, 0.1, 0.25, 1 / 3, 0.5, 1.0, 1.5]),
    digits=st.sampled_from([1, 2, 16]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_close_pairs_are_those_that_are_close(n: int, radius: float, digits: int, seed: int) -> None:
    """Each once, at the borders of cells too, where coarse coordinates put many points."""
    points = np.minimum(np.round(np.random.default_rng(seed).random((n, 2)), digits), 1.0 - 2**-53)
    found = close_pairs(points, radius)
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    expected = {(u, v) for u in range(n) for v in range(u + 1, n) if squares[u, v] <= radius**2}
    assert len(found) == len(expected)
    assert {(min(pair), max(pair)) for pair in found.tolist()} == expected


def test_default_densities_are_mostly_connected() -> None:
    for kind in ("geometric", "erdos_renyi"):
        connected = sum(drawn(GraphPart(kind), 300, seed).connected for seed in range(40))
        assert connected >= 35, kind


def test_regular_graphs_of_four_nodes_come_up_equally_often() -> None:
    counts: dict[bytes, int] = {}
    for seed in range(300):
        digest = drawn(GraphPart("regular", degree=2), 4, seed).digest
        counts[digest] = counts.get(digest, 0) + 1
    assert len(counts) == 3
    assert min(counts.values()) > 60


def test_regular_needs_a_degree_that_is_possible() -> None:
    with pytest.raises(UsageError, match="degree: missing"):
        make_graph(GraphPart("regular"), 6, 1)
    with pytest.raises(RunFailed, match="below 6"):
        make_graph(GraphPart("regular", degree=6), 6, 1)
    with pytest.raises(RunFailed, match="even"):
        make_graph(GraphPart("regular", degree=3), 5, 1)


def test_hopeless_draws_end_with_an_error() -> None:
    with pytest.raises(UsageError, match="100 draws"):
        make_graph(GraphPart("erdos_renyi", probability=1e-6), 20, 1)
    with pytest.raises(UsageError, match="100 draws"):
        make_graph(GraphPart("regular", degree=1), 4, 1)
    with pytest.raises(UsageError, match="100 draws"):
        make_graph(GraphPart("geometric", radius=1e-6), 5, 1)


def test_a_disconnected_draw_is_drawn_again() -> None:
    part = GraphPart("erdos_renyi", probability=0.2)
    seed = next(seed for seed in range(100) if not drawn(part, 12, seed).connected)
    graph = make_graph(part, 12, seed)
    attempts = [drawn(part, 12, seed, attempt) for attempt in range(100)]
    assert graph == next(attempt for attempt in attempts if attempt.connected)
