from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.meeting_weights import meeting_weights
from p2pdp.topology.weights import WEIGHTS, edge_weight, largest_degree, sparse_weights


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["erdos_renyi", "star", "complete"])
def test_of_one_graph_they_are_its_weights(weights: str, kind: str) -> None:
    graph = make_graph(GraphPart(kind), 12, 1)
    pairs = np.array(list(graph.edges()))[::-1]
    found = meeting_weights(12, pairs, weights, largest_degree(graph)).toarray()
    np.testing.assert_allclose(found, sparse_weights(graph, weights).toarray(), atol=1e-15)


def test_the_largest_degree_is_what_was_agreed_on() -> None:
    found = meeting_weights(4, [(0, 1)], "maxdegree", 3).toarray()
    assert found[0, 1] == found[1, 0] == float(edge_weight("maxdegree", 1, 1, 3)) == 0.25
    assert found[2, 2] == found[3, 3] == 1.0
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_where_nobody_meets_everybody_stays() -> None:
    assert np.array_equal(meeting_weights(3, np.zeros((0, 2)), "metropolis", 2).toarray(), np.eye(3))
