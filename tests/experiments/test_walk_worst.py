from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.experiments import walk_worst
from p2pdp.experiments.walk_worst import WorstSpread, positive_eigenvalues, slow_modes, worst_spread
from p2pdp.files.tables import read_edge_list
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from p2pdp.topology.report_walks.matrix import WalkMatrix, all_laws, symmetric_form, walk_matrix
from tests.support.spreads import spreads_from


def assert_is_the_maximum(graph: Graph, rounds: int, stay: float, found: WorstSpread) -> None:
    exact = spreads_from(walk_matrix(graph, stay), np.arange(graph.n), rounds)
    assert found.closed
    np.testing.assert_allclose(found.lower, exact.max(axis=1), rtol=1e-10)
    np.testing.assert_allclose(found.lower, exact[np.arange(rounds + 1), found.start], rtol=1e-10)


@given(n=st.integers(1, 30), seed=st.integers(0, 60), stay=st.sampled_from([0.0, 0.25]), rounds=st.integers(0, 45))
@settings(max_examples=30)
def test_it_is_the_maximum_over_all_starts(n: int, seed: int, stay: float, rounds: int) -> None:
    graph = make_graph(GraphPart("erdos_renyi"), n, seed)
    assert_is_the_maximum(graph, rounds, stay, worst_spread(graph, rounds, stay))


@pytest.mark.parametrize("kind", ["path", "star", "ring", "hypercube"])
def test_bipartite_and_uneven_graphs(kind: str) -> None:
    graph = make_graph(GraphPart(kind), 16, 0)
    assert_is_the_maximum(graph, 40, 0.0, worst_spread(graph, 40))


def test_disconnected_graphs_and_users_alone() -> None:
    graph = graph_of_edges(9, [(0, 1), (1, 2), (2, 0), (4, 5), (5, 6), (6, 7), (7, 4)])
    assert_is_the_maximum(graph, 20, 0.0, worst_spread(graph, 20))
    assert worst_spread(complete_graph(1), 5).lower.tolist() == [1.0] * 6


def test_slow_modes_spare_starts_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = make_graph(GraphPart("geometric", radius=0.1), 700, 1)
    monkeypatch.setattr(walk_worst, "_MODES_FROM", 16)
    found = worst_spread(graph, 300)
    assert found.modes > 0
    assert_is_the_maximum(graph, 300, 0.0, found)
    monkeypatch.setattr(walk_worst, "_MODES_FROM", 10_000)
    without = worst_spread(graph, 300)
    assert without.modes == 0
    assert found.columns < without.columns
    np.testing.assert_allclose(found.lower, without.lower, rtol=1e-10)


def test_a_search_that_ends_early_encloses_the_maximum() -> None:
    graph = make_graph(GraphPart("geometric", radius=0.15), 300, 1)
    found = worst_spread(graph, 150, starts_max=2)
    exact = spreads_from(walk_matrix(graph), np.arange(300), 150).max(axis=1)
    assert found.starts == 2
    assert not found.closed
    assert np.all(found.lower <= exact * (1 + 1e-12))
    assert np.all(exact <= found.upper * (1 + 1e-9))
    with pytest.raises(UsageError, match="one start"):
        worst_spread(graph, 5, starts_max=0)


def test_users_with_the_same_neighbours_count_once() -> None:
    star = make_graph(GraphPart("star"), 200, 0)
    assert worst_spread(star, 30).starts <= 2


@pytest.mark.slow
def test_facebook_pages(data_dir: Path) -> None:
    """Known answers; the search closes for every t up to the mixing time, 2257, too."""
    edges = read_edge_list(data_dir / "facebook_pages_edges.csv.gz")
    found = worst_spread(graph_of_edges(edges.n, edges.edges), 1000)
    assert found.closed
    assert found.starts < 200
    assert found.modes > 0
    known = {1: 22470, 4: 18044.236, 16: 9450.741, 64: 796.365, 256: 113.965, 1000: 4.093}
    for t, value in known.items():
        assert edges.n * found.lower[t] == pytest.approx(value, abs=6e-4)


GRAPH = make_graph(GraphPart("geometric", radius=0.12), 400, 3)


def returns(walk: WalkMatrix, rounds: int) -> np.ndarray:
    return np.diag(all_laws(walk, 2 * rounds)).copy()


@pytest.mark.parametrize("stay", [0.0, 0.2])
def test_lengths_are_bounded_for_every_start_and_nearly_reached(stay: float) -> None:
    walk = walk_matrix(GRAPH, stay)
    modes = slow_modes(walk, 10, 2, returns(walk, 2))
    assert modes is not None
    for rounds in (2, 10, 60, 300):
        exact = np.linalg.norm(all_laws(walk, rounds) - walk.stationary, axis=1)
        assert np.all(exact <= modes.lengths(rounds))
    assert np.all(modes.lengths(300) <= 1.001 * exact + 1e-6)


def test_all_modes_beyond_rho_are_there() -> None:
    walk = walk_matrix(GRAPH)
    modes = slow_modes(walk, 8, 2, returns(walk, 2))
    assert modes is not None
    spectrum = np.linalg.eigvalsh(symmetric_form(walk).toarray())
    assert np.count_nonzero(np.abs(spectrum) > modes.rho) == len(modes.values) + 1


@pytest.mark.parametrize("rho", [0.5, 0.93, 0.99])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_signs_of_a_factorization_count_eigenvalues(sign: float, rho: float) -> None:
    form = symmetric_form(walk_matrix(GRAPH))
    counted = positive_eigenvalues(form, sign, rho)
    assert counted is not None
    assert counted[0] == np.count_nonzero(sign * np.linalg.eigvalsh(form.toarray()) > rho)
    assert counted[1] < 1e-9


def test_a_missed_eigenvalue_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanczos is made to miss the second eigenvalue."""
    from scipy.sparse import linalg

    real = linalg.eigsh

    def blind(matrix: object, k: int, **words: object) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = real(matrix, k=k + 1, **words)
        order = np.argsort(-np.abs(values))[1:]
        return values[order], vectors[:, order]

    monkeypatch.setattr(linalg, "eigsh", blind)
    walk = walk_matrix(GRAPH)
    assert slow_modes(walk, 8, 2, returns(walk, 2)) is None
