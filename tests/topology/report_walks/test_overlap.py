from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import complete_graph, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.mixing import mixing_of
from p2pdp.topology.report_walks.overlap import (
    is_afforded,
    least_overlap,
    least_overlaps,
    overlap_least,
    overlap_of_complete,
    overlaps,
    overlaps_of_laws,
)


def by_hand(laws: np.ndarray, user: int, other: int) -> float:
    return float(min(laws[other, i] / laws[user, i] for i in range(len(laws)) if laws[user, i] > 0.0))


@given(n=st.integers(2, 12), seed=st.integers(0, 40), stay=st.sampled_from([0.0, 0.2]), rounds=st.integers(1, 12))
@settings(max_examples=25)
def test_overlaps_are_the_least_ratios(n: int, seed: int, stay: float, rounds: int) -> None:
    walk = walk_matrix(make_graph(GraphPart("erdos_renyi", probability=0.6), n, seed), stay)
    laws = all_laws(walk, rounds)
    found = overlaps_of_laws(laws, rounds)
    for user in range(n):
        assert found[user, user] == 1.0
        for other in set(range(n)) - {user}:
            assert found[user, other] == pytest.approx(min(1.0, by_hand(laws, user, other)), rel=1e-11, abs=1e-15)
            assert found[user, other] <= by_hand(laws, user, other) * (1 + 1e-15)


@given(n=st.integers(1, 12), seed=st.integers(0, 40), stay=st.sampled_from([0.0, 0.2]), rounds=st.integers(0, 12))
@settings(max_examples=25)
def test_the_least_overlaps_are_those_of_all_pairs(n: int, seed: int, stay: float, rounds: int) -> None:
    walk = walk_matrix(make_graph(GraphPart("erdos_renyi", probability=0.6), n, seed), stay)
    laws = all_laws(walk, rounds)
    pairs = overlaps_of_laws(laws, rounds)
    np.testing.assert_array_equal(least_overlaps(laws, rounds), pairs.min(axis=1))
    assert least_overlap(walk, rounds) == pytest.approx(pairs.min(), rel=1e-12, abs=1e-300)


def test_the_least_overlap_of_a_large_graph_is_that_of_all_laws() -> None:
    graph = make_graph(GraphPart("regular", degree=8), 300, 3)
    walk = walk_matrix(graph, 0.1)
    assert least_overlap(walk, 12) == pytest.approx(least_overlaps(all_laws(walk, 12), 12).min(), rel=1e-12)
    assert is_afforded(graph, 1000)
    assert not is_afforded(graph, 10**6)


def test_on_a_bipartite_graph_without_staying_the_other_side_hides_nobody() -> None:
    found = overlaps_of_laws(all_laws(walk_matrix(make_graph(GraphPart("hypercube"), 8, 0)), 12), 12)
    sides = np.array([user.bit_count() % 2 for user in range(8)])
    assert np.all((found > 0.0) == (sides[:, None] == sides))


@pytest.mark.parametrize("stay", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 8])
def test_the_complete_graph_in_closed_form(stay: float, rounds: int) -> None:
    exact = least_overlap(walk_matrix(complete_graph(5), stay), rounds)
    assert overlap_of_complete(5, stay, rounds) == pytest.approx(exact, rel=1e-10, abs=1e-15)


def test_a_report_seen_at_a_relay_restarts_there() -> None:
    walk = walk_matrix(make_graph(GraphPart("regular", degree=4), 12, 1))
    seen, others = all_laws(walk, 3)[5], all_laws(walk, 9)
    found = overlaps(seen, others, 9)
    assert found.min() >= 0.0
    assert found[2] == pytest.approx(min((others[2] / seen)[seen > 0.0].min(), 1.0))


def test_small_graphs_are_exact_and_better_than_the_bound() -> None:
    graph = make_graph(GraphPart("regular", degree=6), 40, 8)
    rounds = 19
    kappa, source = overlap_least(graph, 0.1, rounds)
    assert source == "exact"
    assert mixing_of(graph, 0.1).overlap(rounds) <= kappa < 1.0
    assert overlap_least(complete_graph(1), 0.0, 3) == (1.0, "exact")
    assert overlap_least(complete_graph(100_000), 0.0, 3)[0] > 0.99


def test_large_graphs_get_the_spectral_bound_and_nothing_where_there_is_none() -> None:
    graph = make_graph(GraphPart("regular", degree=6), 1100, 8)
    assert overlap_least(graph, 0.1, 60) == (mixing_of(graph, 0.1).overlap(60), "spectral")
    assert overlap_least(make_graph(GraphPart("ring"), 1100, 0), 0.0, 60) == (0.0, "spectral")
    with pytest.raises(UsageError, match="stay"):
        overlap_least(graph, 1.0, 60)


def test_there_is_no_overlap_with_nobody() -> None:
    with pytest.raises(UsageError, match="two users"):
        overlap_of_complete(1, 0.0, 1)
