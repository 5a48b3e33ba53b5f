from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from p2pdp.core.errors import UsageError
from p2pdp.files.given import Given, edges_text, given_data, given_edges
from p2pdp.files.tables import largest_component, read_edge_list


def cells(data: Given) -> list[list[Any]]:
    return [list(data.numbers(place)[0]) for place in range(len(data.names))]


@pytest.mark.parametrize(
    "data",
    [
        np.array([1.0, 2.0, 3.0]),
        np.array([[1], [2], [3]]),
        [1, 2.0, np.float32(3)],
        (True, 2, 3),
        pd.Series([1, 2, 3]),
        pd.DataFrame([1, 2, 3]),
        pd.DataFrame({0: pd.array([1, 2, 3], dtype="Int64")}),
        np.array([1, 2, 3], dtype=object),
    ],
)
def test_one_table_comes_in_many_forms(data: Any) -> None:
    found = given_data(data)
    assert (cells(found), found.names, found.rows, found.starts) == ([[1.0, 2.0, 3.0]], (0,), 3, None)


@pytest.mark.parametrize(
    "data",
    [
        [[1.0, 2.0], [3.0], np.array([4.0, 5.0])],
        {2: [4, 5], 0: [1, 2], 1: 3},
        [pd.Series([1, 2]), pd.Series([3]), pd.Series([4, 5])],
    ],
)
def test_one_for_each_user_comes_as_list_or_dict(data: Any) -> None:
    found = given_data(data)
    assert (cells(found), found.rows, found.starts) == ([[1.0, 2.0, 3.0, 4.0, 5.0]], 5, (0, 2, 3, 5))


X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])


def test_features_and_a_target_come_as_a_pair() -> None:
    found = given_data((X, Y))
    assert (found.names, found.rows, found.target) == ((0, 1, 2), 2, 2)
    assert cells(found) == [[1.0, 3.0], [2.0, 4.0], [0.0, 1.0]]
    named = given_data((pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y, name="c")))
    assert (named.names, named.target) == (("a", "b", "target"), 2)
    each = given_data([(X, Y), (X[:1], Y[:1])])
    assert (each.starts, each.target, each.names) == ((0, 2, 3), 2, (0, 1, 2))
    assert Given.unpacked(found.packed()).target == 2
    assert given_data(([1.0, 2.0], [3.0, 4.0])).starts == (0, 2, 4), "two lists are two users"
    with pytest.raises(UsageError, match="called target already"):
        given_data((pd.DataFrame(X, columns=["a", "target"]), Y))


def test_a_dict_may_be_keyed_by_the_labels_of_the_graph() -> None:
    assert cells(given_data({"b": [2], "a": [1]}, ("a", "b"))) == [[1.0, 2.0]]
    for wrong in ({"a": [1]}, {"a": [1], "c": [2]}, {"a": [1], "b": [1], 3: [2]}):
        with pytest.raises(UsageError, match="labels of the graph"):
            given_data(wrong, ("a", "b"))
    with pytest.raises(UsageError, match="DataFrame"):
        given_data({"hours": [1, 2], "age": [3, 4]})


def test_columns_have_the_names_of_a_frame() -> None:
    frame = pd.DataFrame({"hours": [1, 2], "site": ["x ", "y"]})
    found = given_data(frame)
    assert found.names == ("hours", "site")
    assert found.groups(1) == ("x", "y")
    assert found.numbers(1)[1] == 0
    with pytest.raises(UsageError, match="user 1: has the columns hours, and user 0 has hours, site"):
        given_data([frame, frame[["hours"]]])
    with pytest.raises(UsageError, match="several columns of one name"):
        given_data(pd.concat([frame, frame], axis=1))


def test_what_the_caller_changes_later_changes_nothing() -> None:
    rows = np.array([1.0, 2.0])
    found = given_data(rows)
    rows[0] = 9.0
    assert cells(found) == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="read-only"):
        found.columns[0][0] = 9.0


def test_cells_that_are_no_numbers_are_found_and_never_shown() -> None:
    for odd in ("4711", None, pd.NA, 1j, np.datetime64("2024-01-01")):
        found = given_data(pd.DataFrame({"a": pd.Series([1, odd], dtype=object)}))
        assert found.numbers(0)[1] == 1
        assert "4711" not in repr(found)


@pytest.mark.parametrize("data", [3, None, "text", b"x", {1, 2}, np.zeros((2, 2, 2)), {}, [[1], [[2, 3], [4]]]])
def test_other_data_are_refused(data: Any) -> None:
    with pytest.raises(UsageError, match="data"):
        given_data(data).numbers(0)


def test_masked_cells_are_refused() -> None:
    with pytest.raises(UsageError, match="masked"):
        given_data(np.ma.masked_array([1.0, 2.0], [False, True]))


def test_a_number_beyond_all_floats_is_infinite() -> None:
    assert given_data([1, 10**400]).columns[0] == [1.0, math.inf]
    assert given_data(pd.Series([-(10**400), 2], dtype=object)).columns[0] == [-math.inf, 2.0]


def test_weights_of_1_say_nothing() -> None:
    ones = nx.Graph()
    ones.add_weighted_edges_from([(0, 1, 1), (1, 2, 1.0)])
    assert given_edges(ones) == [("0", "1"), ("1", "2")]


def test_data_reach_another_process_as_they_are() -> None:
    for data in ([[1.5, 2], [np.nan]], pd.DataFrame({"a": [1, 2], "b": ["x", None]})):
        found = given_data(data)
        again = Given.unpacked(found.packed())
        assert (again.names, again.rows, again.starts) == (found.names, found.rows, found.starts)
        for one, other in zip(found.columns, again.columns, strict=True):
            np.testing.assert_array_equal(one, other)


WEIGHTED = nx.karate_club_graph()
KARATE = nx.Graph()
KARATE.add_nodes_from(WEIGHTED)
KARATE.add_edges_from(WEIGHTED.edges())


@pytest.mark.parametrize(
    "graph",
    [
        KARATE,
        nx.MultiGraph(KARATE),
        nx.to_numpy_array(KARATE, weight=None),
        nx.to_numpy_array(KARATE, weight=None).astype(bool).tolist(),
        sparse.csr_matrix(nx.to_numpy_array(KARATE, weight=None)),
        nx.to_pandas_adjacency(KARATE, weight=None),
    ],
)
def test_a_graph_comes_in_many_forms(graph: Any) -> None:
    found = largest_component(given_edges(graph))
    assert found.labels == tuple(map(str, range(34)))
    assert {tuple(edge) for edge in found.edges.tolist()} == set(KARATE.edges())


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (nx.DiGraph([(0, 1)]), "directed"),
        (WEIGHTED, "weights"),
        (nx.MultiGraph(WEIGHTED), "weights"),
        (np.array([[0, 1], [0, 0]]), "symmetric"),
        (np.array([[0, 0.5], [0.5, 0]]), "zeros and ones"),
        (np.ones((2, 3)), "square"),
        (np.array([[0, np.nan], [np.nan, 0]]), "zeros and ones"),
        ([[0, 1], [1]], "adjacency matrix"),
        ("ring", "networkx"),
        (nx.Graph([(1, "1")]), "same text"),
        (nx.Graph([(1, "two\nlines")]), "label"),
        (nx.Graph([(1, " ")]), "label"),
    ],
)
def test_other_graphs_are_refused(graph: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        given_edges(graph)


LABELS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6) | st.integers(-3, 30).map(str)


@settings(max_examples=60)
@given(edges=st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=20))
def test_edges_read_back_as_they_were(edges: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = largest_component(edges)
    found = largest_component([(whole.labels[u], whole.labels[v]) for u, v in whole.edges.tolist()] or edges)
    if len(found.labels) < 2:
        return
    path: Path = tmp_path_factory.mktemp("edges") / "graph.txt"
    path.write_text(edges_text(found), encoding="utf-8")
    again = read_edge_list(path)
    assert again.labels == found.labels
    assert again.edges.tolist() == found.edges.tolist()
