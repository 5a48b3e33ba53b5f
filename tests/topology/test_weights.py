from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from p2pdp.topology.weights import (
    WEIGHTS,
    check_convergence,
    edge_weight,
    largest_degree,
    meeting_weights,
    sparse_weights,
)

KINDS = ("ring", "path", "star", "grid", "torus", "exponential", "erdos_renyi", "geometric", "complete")


@pytest.mark.parametrize(
    ("weights", "expected"), [("metropolis", (1, 5)), ("maxdegree", (1, 8)), ("lazy", (1, 8)), ("uniform", (1, 4))]
)
def test_the_weight_of_an_edge_depends_on_the_larger_degree(weights: str, expected: tuple[int, int]) -> None:
    assert edge_weight(weights, 2, 4, 7) == edge_weight(weights, 4, 2, 7) == Fraction(*expected)


def rational_rows(graph: Graph, weights: str) -> list[dict[int, Fraction]]:
    """The matrix exactly, row by row, as a node knows its own row."""
    degree_max = max(1, largest_degree(graph))
    rows = []
    for node, neighbours in enumerate(graph.neighbours):
        row = {v: edge_weight(weights, graph.degree(node), graph.degree(v), degree_max) for v in neighbours}
        left = 1 - sum(row.values(), Fraction(0))
        rows.append(row | ({node: left} if left else {}))
    return rows


@given(kind=st.sampled_from(KINDS), n=st.integers(1, 30), weights=st.sampled_from(WEIGHTS))
def test_matrices_are_symmetric_stochastic_and_the_same_either_way(kind: str, n: int, weights: str) -> None:
    made = make_graph(
        GraphPart(
            kind=kind, probability=1.0 if kind == "erdos_renyi" else None, radius=2.0 if kind == "geometric" else None
        ),
        n,
        1,
    )
    sparse = sparse_weights(made, weights).toarray()
    exact = np.zeros((n, n))
    for node, row in enumerate(rational_rows(made, weights)):
        assert sum(row.values()) == 1
        assert all(weight > 0 for weight in row.values())
        for other, weight in row.items():
            exact[node, other] = float(weight)
    np.testing.assert_allclose(sparse, exact, atol=1e-12)
    np.testing.assert_array_equal(exact, exact.T)
    for node in range(n):
        assert {other for other in range(n) if other != node and exact[node, other]} == set(made.neighbours[node])


def test_a_node_needs_only_degrees_near_by() -> None:
    made = make_graph(GraphPart(kind="star"), 6, 0)
    assert largest_degree(made) == 5
    assert rational_rows(made, "metropolis")[3] == {0: Fraction(1, 6), 3: Fraction(5, 6)}
    assert rational_rows(made, "uniform")[0] == dict.fromkeys(range(1, 6), Fraction(1, 5))


@pytest.mark.parametrize(("kind", "n"), [("ring", 6), ("hypercube", 8), ("ring", 2), ("complete", 2)])
def test_two_sides_that_would_swap_for_ever_are_refused(kind: str, n: int) -> None:
    made = make_graph(GraphPart(kind=kind), n, 0)
    with pytest.raises(UsageError, match=r"weights.*bipartite"):
        check_convergence(made, "uniform")
    for weights in ("metropolis", "lazy", "maxdegree"):
        check_convergence(made, weights)
        values = np.linalg.eigvalsh(sparse_weights(made, weights).toarray())
        assert values[0] > -1 + 1e-9


def test_what_converges_is_let_pass() -> None:
    check_convergence(complete_graph(1), "uniform")
    check_convergence(make_graph(GraphPart(kind="ring"), 7, 0), "uniform")
    check_convergence(make_graph(GraphPart(kind="path"), 4, 0), "uniform")  # bipartite, but its ends stay at home


def test_a_graph_in_pieces_and_unknown_weights_are_refused() -> None:
    with pytest.raises(UsageError, match="not connected"):
        check_convergence(graph_of_edges(4, [[0, 1], [2, 3]]), "metropolis")
    with pytest.raises(UsageError, match="metropolis, maxdegree, lazy, uniform"):
        edge_weight("other", 1, 1, 1)
    with pytest.raises(UsageError, match="metropolis"):
        sparse_weights(complete_graph(3), "other")
    with pytest.raises(UsageError, match="degree"):
        edge_weight("lazy", 3, 1, 2)


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
