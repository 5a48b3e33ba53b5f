from __future__ import annotations

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.distances import UNREACHED, distances_from
from p2pdp.topology.graphs import complete_graph, graph_of_edges, make_graph


def test_on_a_ring_they_go_either_way_round() -> None:
    assert distances_from(make_graph(GraphPart(kind="ring"), 6, 0), 1) == [1, 0, 1, 2, 3, 2]


def test_on_a_hypercube_they_count_bits() -> None:
    graph = make_graph(GraphPart(kind="hypercube"), 16, 0)
    found = [distances_from(graph, node) for node in range(16)]
    expected = [[(u ^ v).bit_count() for v in range(16)] for u in range(16)]
    assert found == expected


def test_everybody_is_next_to_everybody_on_a_complete_graph() -> None:
    assert [distances_from(complete_graph(4), node)[node] for node in range(4)] == [0, 0, 0, 0]
    assert distances_from(complete_graph(4), 1) == [1, 0, 1, 1]


def test_where_there_is_no_path() -> None:
    assert distances_from(graph_of_edges(3, [[0, 1]]), 0) == [0, 1, UNREACHED]
