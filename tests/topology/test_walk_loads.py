from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import complete_graph, make_graph
from p2pdp.topology.walk_loads import empty_places, empty_places_at_rest, expected_empty
from p2pdp.topology.walk_matrix import all_laws, walk_matrix


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
