"""Laws of every graph kind, and the kinds of wrong input."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import EdgeList, Graph, complete_graph, graph_of_edges, is_public, make_graph

PARTS = [
    *(GraphPart(kind) for kind in ("complete", "ring", "path", "star", "grid", "torus", "hypercube", "exponential")),
    *(GraphPart("regular", degree=degree) for degree in (2, 3, 4, 7, 20)),
    GraphPart("erdos_renyi"),
    GraphPart("erdos_renyi", probability=1.0),
    GraphPart("geometric"),
]


def possible(part: GraphPart, n: int) -> bool:
    if part.kind == "hypercube":
        return n.bit_count() == 1
    return part.degree is None or (part.degree < n and part.degree * n % 2 == 0)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.kind}-{part.degree or part.probability or ''}")
def test_laws_of_every_kind(part: GraphPart) -> None:
    for n in range(1, 41):
        if not possible(part, n):
            with pytest.raises(RunFailed):
                make_graph(part, n, 3)
            continue
        graph = make_graph(part, n, 3)
        assert graph.n == n == len(graph.neighbours)
        assert graph.connected
        pairs = {(u, v) for u in range(n) for v in graph.neighbours[u]}
        assert all(u != v and (v, u) in pairs for u, v in pairs)
        assert all(list(row) == sorted(set(row)) for row in graph.neighbours)
        assert list(graph.edges()) == sorted((u, v) for u, v in pairs if u < v)
        assert graph.edge_count == len(pairs) // 2
        assert [graph.degree(u) for u in range(n)] == [len(row) for row in graph.neighbours]
        if part.degree is not None:
            assert {graph.degree(u) for u in range(n)} == {part.degree}
        plain = nx.Graph(list(graph.edges()))
        plain.add_nodes_from(range(n))
        assert graph.bipartite == nx.is_bipartite(plain)
        again = make_graph(part, n, 3)
        assert again == graph
        assert again.digest == graph.digest
        assert hash(again) == hash(graph)


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11))))
def test_any_list_of_edges_becomes_a_sound_graph(n: int, pairs: list[tuple[int, int]]) -> None:
    inside = [(u % n, v % n) for u, v in pairs]
    graph = graph_of_edges(n, inside)
    plain = nx.Graph([(u, v) for u, v in inside if u != v])
    plain.add_nodes_from(range(n))
    assert set(graph.edges()) == {(min(edge), max(edge)) for edge in plain.edges}
    assert graph.components == tuple(sorted(tuple(sorted(part)) for part in nx.connected_components(plain)))
    assert graph.connected == nx.is_connected(plain)
    assert graph.bipartite == nx.is_bipartite(plain)
    assert graph == Graph(n, graph.neighbours) == graph_of_edges(n, [(v, u) for u, v in reversed(inside)] + inside)


def test_small_rings() -> None:
    assert list(make_graph(GraphPart("ring"), 1, 0).edges()) == []
    assert list(make_graph(GraphPart("ring"), 2, 0).edges()) == [(0, 1)]
    assert make_graph(GraphPart("ring"), 3, 0) == complete_graph(3)
    assert list(complete_graph(1).edges()) == []


def test_the_complete_graph_answers_without_its_edges() -> None:
    graph = complete_graph(1_000_000)
    row = graph.neighbours[777_777]
    assert graph.degree(777_777) == len(row) == 999_999
    assert (row[0], row[777_776], row[777_777], row[-1]) == (0, 777_776, 777_778, 999_999)
    assert 777_777 not in row
    assert 777_776 in row
    assert 1_000_000 not in row
    assert -1 not in row
    assert graph.connected
    assert not graph.bipartite
    assert graph.digest != complete_graph(999_999).digest


@pytest.mark.parametrize("n", range(1, 12))
def test_the_complete_graph_is_a_sequence_of_sequences(n: int) -> None:
    rows = [tuple(v for v in range(n) if v != u) for u in range(n)]
    graph = complete_graph(n)
    assert [tuple(row) for row in graph.neighbours] == rows
    assert [tuple(row) for row in graph.neighbours[1:]] == rows[1:]
    for u, row in enumerate(rows):
        seen = graph.neighbours[u]
        assert seen == row
        assert hash(seen) == hash(row)
        assert seen[1:3] == row[1:3]
        assert seen[::-1] == row[::-1]
        assert [seen[place] for place in range(-len(row), len(row))] == [*row, *row]
        with pytest.raises(IndexError):
            seen[n - 1]
    assert graph == graph_of_edges(n, [(u, v) for u in range(n) for v in range(u)])
    with pytest.raises(IndexError):
        graph.neighbours[n]


def test_digests_tell_graphs_apart() -> None:
    graphs = [make_graph(part, n, 1) for part in PARTS for n in range(8, 20) if possible(part, n)]
    named: dict[bytes, tuple[int, tuple[tuple[int, int], ...]]] = {}
    for graph in graphs:
        content = (graph.n, tuple(graph.edges()))
        assert named.setdefault(graph.digest, content) == content
        assert len(graph.digest) == 32
    assert len(set(named.values())) == len(named) > 50


@pytest.mark.parametrize(
    "rows",
    [
        ((1,), ()),
        ((0,), ()),
        ((1, 1), (0,)),
        ((2,), (0,)),
        ((-1,), (0,)),
        ((2, 1), (0, 2), (0, 1)),
        ((1,), (0,), (0,)),
    ],
)
def test_unsound_rows_are_refused(rows: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(UsageError, match="rows of neighbours must"):
        Graph(len(rows), rows)


def test_wrong_numbers_of_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="2 nodes"):
        Graph(2, ((),))
    with pytest.raises(UsageError, match="0 nodes"):
        Graph(0, ())
    with pytest.raises(UsageError, match="at least one node"):
        make_graph(GraphPart("ring"), 0, 1)


def test_kind_file_takes_the_edge_list_that_was_read() -> None:
    edges = EdgeList(("a", "b", "c"), np.array([(0, 1), (1, 2)]), components=1)
    part = GraphPart("file", path="edges.csv")
    assert make_graph(part, 3, 1, edges) == make_graph(GraphPart("path"), 3, 1)
    with pytest.raises(RunFailed, match="has 3 nodes, the run has 4"):
        make_graph(part, 4, 1, edges)
    with pytest.raises(UsageError, match="has been read"):
        make_graph(part, 3, 1)


def test_kinds_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(UsageError, match="come with gossip"):
        make_graph(GraphPart("erdos_renyi", changing=True), 5, 1)
    with pytest.raises(UsageError, match='no kind "rings"'):
        make_graph(GraphPart("rings"), 5, 1)


def test_who_may_know_the_graph() -> None:
    assert [part.kind for part in PARTS if is_public(part)] == ["complete", "ring"]
    assert is_public(GraphPart("file"))
    for part in PARTS:
        assert is_public(dataclasses.replace(part, public=True))
        assert not is_public(dataclasses.replace(part, public=False))


BIG_PARTS = [
    *(GraphPart(kind) for kind in ("ring", "torus", "exponential", "erdos_renyi")),
    GraphPart("regular", degree=20),
]


@pytest.mark.parametrize("part", BIG_PARTS, ids=lambda part: part.kind)
def test_ten_thousand_nodes(part: GraphPart) -> None:
    graph = make_graph(part, 10_000, 5)
    assert graph.connected
    assert sum(graph.degree(u) for u in range(graph.n)) == 2 * graph.edge_count
