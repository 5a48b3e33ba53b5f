"""The kinds without chance, against what their names mean."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import Graph, graph_of_edges, make_graph
from p2pdp.topology.kinds import RANDOM_KINDS, close_pairs, draw_edges


def edges(kind: str, n: int, rows: int | None = None, columns: int | None = None) -> set[tuple[int, int]]:
    return set(make_graph(GraphPart(kind, rows=rows, columns=columns), n, 0).edges())


def of_networkx(graph: nx.Graph) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in graph.edges if u != v}


@pytest.mark.parametrize("n", range(1, 41))
def test_ring_path_star_and_complete_are_those_of_networkx(n: int) -> None:
    assert edges("ring", n) == of_networkx(nx.cycle_graph(n))
    assert edges("path", n) == of_networkx(nx.path_graph(n))
    assert edges("star", n) == of_networkx(nx.star_graph(n - 1))
    assert edges("complete", n) == of_networkx(nx.complete_graph(n))


@pytest.mark.parametrize("n", range(1, 41))
@pytest.mark.parametrize("kind", ["grid", "torus"])
def test_lattices_are_those_of_networkx(kind: str, n: int) -> None:
    rows = max(side for side in range(1, math.isqrt(n) + 1) if n % side == 0)
    lattice = nx.grid_2d_graph(rows, n // rows, periodic=kind == "torus")
    numbered = nx.relabel_nodes(lattice, {(r, c): r * (n // rows) + c for r, c in lattice})
    assert edges(kind, n) == of_networkx(numbered)


def test_sides_of_a_lattice_may_be_given_both_or_one() -> None:
    assert edges("grid", 12, rows=2, columns=6) == edges("grid", 12, rows=2) == edges("grid", 12, columns=6)
    assert edges("grid", 12, rows=2) != edges("grid", 12)
    assert edges("torus", 12, rows=1) == edges("ring", 12)
    for rows, columns in ((5, None), (None, 5), (3, 3), (24, None), (None, 24)):
        with pytest.raises(RunFailed, match="12 nodes with"):
            edges("grid", 12, rows=rows, columns=columns)


@pytest.mark.parametrize("n", range(1, 41))
def test_hypercubes_exist_for_powers_of_two_only(n: int) -> None:
    if n.bit_count() == 1:
        near = {(u, v) for v in range(n) for u in range(v) if (u ^ v).bit_count() == 1}
        assert edges("hypercube", n) == near
    else:
        with pytest.raises(RunFailed, match="power of two"):
            edges("hypercube", n)


@pytest.mark.parametrize("n", range(1, 41))
def test_exponential_links_powers_of_two_both_ways(n: int) -> None:
    """[YYC21] directs the edges; gossip with symmetric weights needs both ways."""
    steps = {(sign * 2**k) % n for k in range(7) if 2**k < n for sign in (1, -1)}
    assert edges("exponential", n) == {(u, v) for u in range(n) for v in range(u + 1, n) if (v - u) % n in steps}


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
