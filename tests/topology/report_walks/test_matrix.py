from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from p2pdp.topology.report_walks.matrix import (
    LAWS_MAX,
    all_laws,
    empty_places,
    empty_places_at_rest,
    expected_empty,
    symmetric_form,
    walk_matrix,
)

PATH = graph_of_edges(4, [(0, 1), (1, 2), (2, 3)])


def some_graph(n: int, seed: int) -> Graph:
    return make_graph(GraphPart("erdos_renyi", probability=0.5), n, seed)


def test_a_report_moves_to_a_uniform_neighbour_or_stays() -> None:
    expected = [[0.2, 0.8, 0, 0], [0.4, 0.2, 0.4, 0], [0, 0.4, 0.2, 0.4], [0, 0, 0.8, 0.2]]
    np.testing.assert_allclose(walk_matrix(PATH, 0.2).forward.toarray(), expected, atol=1e-15)


@given(n=st.integers(2, 14), seed=st.integers(0, 50), stay=st.sampled_from([0.0, 0.3]), rounds=st.integers(0, 9))
@settings(max_examples=25)
def test_laws_are_powers_of_the_matrix(n: int, seed: int, stay: float, rounds: int) -> None:
    walk = walk_matrix(some_graph(n, seed), stay)
    power = np.linalg.matrix_power(walk.forward.toarray(), rounds)
    laws = all_laws(walk, rounds)
    np.testing.assert_allclose(laws, power, atol=1e-13)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(walk.stationary @ walk.forward.toarray(), walk.stationary, atol=1e-13)


def test_the_symmetric_form_has_the_same_eigenvalues_and_the_root_of_the_stationary_law() -> None:
    walk = walk_matrix(some_graph(9, 1), 0.1)
    form = symmetric_form(walk).toarray()
    np.testing.assert_array_equal(form, form.T)
    wanted = np.sort(np.linalg.eigvals(walk.forward.toarray()).real)
    np.testing.assert_allclose(np.linalg.eigvalsh(form), wanted, atol=1e-12)
    np.testing.assert_allclose(form @ np.sqrt(walk.stationary), np.sqrt(walk.stationary), atol=1e-13)


def test_who_has_no_neighbours_keeps_its_report() -> None:
    alone = walk_matrix(graph_of_edges(3, [(0, 1)]))
    np.testing.assert_array_equal(all_laws(alone, 5)[2], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(walk_matrix(complete_graph(1)).stationary, [1.0])


def test_what_is_held_by_or_meant_for_someone_away_stays() -> None:
    away = walk_matrix(PATH, 0.2, away=[1])
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.6, 0.4], [0, 0, 0.8, 0.2]]
    np.testing.assert_allclose(away.forward.toarray(), expected, atol=1e-15)


@pytest.mark.parametrize("stay", [-0.1, 1.0, float("nan")])
def test_impossible_stays_are_refused(stay: float) -> None:
    with pytest.raises(UsageError, match="stay"):
        walk_matrix(PATH, stay)


def test_impossible_questions_are_refused() -> None:
    walk = walk_matrix(PATH)
    with pytest.raises(UsageError, match="rounds"):
        all_laws(walk, -1)
    with pytest.raises(UsageError, match="at most"):
        all_laws(walk_matrix(make_graph(GraphPart("ring"), LAWS_MAX + 1, 0)), 1)


def test_uniform_loads_are_the_occupancy_problem() -> None:
    n = 1000
    mean, variance = empty_places_at_rest(np.full(n, 1 / n))
    exact = n * (1 - 1 / n) ** n
    pairs = n * (n - 1) * (1 - 2 / n) ** n
    assert mean == pytest.approx(exact)
    assert variance == pytest.approx(pairs + exact - exact**2, rel=5e-3)


def test_of_unlike_laws_as_many_are_empty_as_are_drawn() -> None:
    graph = make_graph(GraphPart("erdos_renyi", probability=0.1), 40, 6)
    laws = all_laws(walk_matrix(graph, 0.2), 3)
    generator = np.random.default_rng(5)
    uniform = generator.random((20_000, 40))
    cumulated = np.cumsum(laws, axis=1)
    places = np.stack([np.searchsorted(cumulated[j], uniform[:, j]) for j in range(40)], axis=1).clip(max=39)
    empty = np.array([40 - len(np.unique(row)) for row in places])
    mean, variance = empty_places(laws)
    assert mean == pytest.approx(empty.mean(), abs=6 * empty.std() / 20_000**0.5)
    assert variance == pytest.approx(empty.var(), rel=0.1)


def test_who_keeps_its_report_has_one() -> None:
    assert empty_places(np.eye(5)) == (0.0, 0.0)
    assert expected_empty(complete_graph(1), 0.0, 3) == (0.0, 0.0)
    assert empty_places(np.diag([1.0 + 2e-16, 1.0])) == (0.0, 0.0), "sums of a law may be rounded up"


def test_small_graphs_by_their_laws_large_ones_at_rest() -> None:
    small = make_graph(GraphPart("ring"), 9, 0)
    assert expected_empty(small, 0.1, 4) == empty_places(all_laws(walk_matrix(small, 0.1), 4))
    for large in (make_graph(GraphPart("ring"), 2000, 0), complete_graph(2000)):
        assert expected_empty(large, 0.1, 4)[0] == pytest.approx(2000 * np.exp(-1.0), rel=1e-3)
