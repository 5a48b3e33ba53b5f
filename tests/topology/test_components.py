from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.topology.components import component_labels, component_sizes, placements
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges


def by_networkx(graph: Graph, without: set[int]) -> dict[int, set[int]]:
    drawn = nx.Graph()
    drawn.add_nodes_from(set(range(graph.n)) - without)
    drawn.add_edges_from((u, v) for u, v in graph.edges() if not {u, v} & without)
    return {user: part for part in nx.connected_components(drawn) for user in part}


def ring(n: int) -> Graph:
    return graph_of_edges(n, [(user, (user + 1) % n) for user in range(n)])


@given(st.integers(2, 30), st.floats(0.0, 0.4), st.integers(0, 2**32))
def test_components_are_those_of_networkx(n: int, density: float, seed: int) -> None:
    drawn = nx.gnp_random_graph(n, density, seed=seed)
    graph = graph_of_edges(n, list(drawn.edges))
    random = np.random.default_rng(seed)
    without = {int(user) for user in np.nonzero(random.random(n) < 0.3)[0]}
    expected = by_networkx(graph, without)
    sizes, labels = component_sizes(graph, without), component_labels(graph, without)
    for user in range(n):
        assert sizes[user] == len(expected.get(user, ()))
        assert labels[user] == min(expected.get(user, {user}))


def test_a_long_path_is_one_component_whatever_the_numbering() -> None:
    order = np.random.default_rng(1).permutation(5000)
    graph = graph_of_edges(5000, np.stack([order[:-1], order[1:]], axis=1))
    assert set(component_sizes(graph)) == {5000}
    middle = int(order[1000])
    assert sorted(set(component_sizes(graph, [middle]))) == [0, 1000, 3999]


def test_two_users_out_of_a_ring_leave_it_whole_only_side_by_side() -> None:
    """Of 28 pairs in a ring, 8 are neighbours; others leave a smaller part of 1, 2 or 3 users: 8, 8 and 4 pairs."""
    found = placements(ring(8), 2, seed=1, count=4000)
    assert found.left == 6
    assert found.broken == pytest.approx(20 / 28, abs=0.03)
    shares = np.bincount(found.smallest, minlength=7) / 4000
    assert shares == pytest.approx(np.array([0, 8, 8, 4, 0, 0, 8]) / 28, abs=0.03)
    assert found.typical == 2


def test_placements_follow_from_the_seed_alone() -> None:
    assert placements(ring(40), 5, seed=3) == placements(ring(40), 5, seed=3)
    assert placements(ring(40), 5, seed=3) != placements(ring(40), 5, seed=4)


def test_nobody_out_and_the_complete_graph_need_no_chance() -> None:
    assert placements(ring(9), 0, seed=1).typical == 9
    found = placements(complete_graph(300), 100, seed=1)
    assert (found.broken, found.typical) == (0.0, 200)


def test_those_who_are_out_in_any_case_are_never_counted() -> None:
    """A path of 0 to 4 without user 2: taking out one more leaves a single user beside a pair."""
    path = graph_of_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    found = placements(path, 1, seed=1, among=[0, 1, 3, 4])
    assert (found.left, set(found.smallest)) == (3, {1})
    assert set(placements(path, 0, seed=1, among=[0, 1, 3, 4]).smallest) == {2}


def test_somebody_has_to_be_left() -> None:
    with pytest.raises(UsageError):
        placements(ring(5), 5, seed=1)
