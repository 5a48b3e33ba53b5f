from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from p2pdp.topology.walk_matrix import (
    LAWS_MAX,
    all_laws,
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
