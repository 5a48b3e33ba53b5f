from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.files.tables import read_edge_list
from p2pdp.topology.graphs import complete_graph, graph_of_edges, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.mixing import ETA, ROUNDS_MAX, Mixing, auto_rounds, mixing_of, mixing_rounds, rounds_of

RING = GraphPart("ring")


@pytest.mark.parametrize("n", [5, 9, 601])
def test_the_odd_ring_in_closed_form(n: int) -> None:
    found = mixing_of(make_graph(RING, n, 0))
    assert found.alpha == pytest.approx(1.0 - math.cos(math.pi / n), abs=1e-8)
    assert found.alpha <= 1.0 - math.cos(math.pi / n)


def test_staying_moves_eigenvalues_and_makes_bipartite_graphs_mix() -> None:
    found = mixing_of(make_graph(RING, 8, 0), stay=0.5)
    assert found.alpha == pytest.approx(0.5 - 0.5 * math.cos(2 * math.pi / 8))
    assert found.last == pytest.approx(0.0, abs=1e-12)


def test_complete_graphs_need_no_matrix() -> None:
    found = mixing_of(complete_graph(2_000_000))
    assert found.alpha == pytest.approx(1.0 - 1.0 / 1_999_999)
    small = complete_graph(6)
    values = np.linalg.eigvalsh(walk_matrix(small, 0.1).forward.toarray())
    assert values[:-1] == pytest.approx([mixing_of(small, 0.1).second] * 5)


@pytest.mark.parametrize("kind", ["ring", "path", "star", "hypercube"])
def test_bipartite_graphs_are_refused_and_the_remedy_is_named(kind: str) -> None:
    graph = make_graph(GraphPart(kind), 8, 0)
    for wanted in ("auto", "mixing"):
        with pytest.raises(UsageError, match=r"bipartite.*stay above 0"):
            rounds_of(graph, 0.0, wanted)
        assert rounds_of(graph, 0.1, wanted) > 1
    assert rounds_of(graph, 0.0, 7) == 7


def test_disconnected_graphs_are_refused_with_the_number_of_parts() -> None:
    parts = graph_of_edges(6, [(0, 1), (1, 2), (0, 2), (3, 4)])
    with pytest.raises(UsageError, match="3 parts"):
        rounds_of(parts, 0.5, "auto")
    assert rounds_of(parts, 0.5, 3) == 3


def test_auto_rounds_are_enough_and_one_less_is_not_by_the_bound() -> None:
    found = mixing_of(make_graph(GraphPart("regular", degree=6), 40, 8), 0.1)
    rounds = auto_rounds(found)
    exact = math.log(240 / (ETA * 6)) / found.alpha
    assert rounds - 1 < exact <= rounds
    assert found.unevenness(rounds) <= ETA
    assert found.overlap(rounds) >= (1 - ETA) / (1 + ETA) - 1e-9


def test_every_chance_is_as_even_as_said() -> None:
    graph = make_graph(GraphPart("erdos_renyi", probability=0.3), 30, 4)
    walk, found = walk_matrix(graph), mixing_of(graph)
    for rounds in (1, 5, 20, auto_rounds(found)):
        laws = all_laws(walk, rounds)
        assert np.abs(laws / walk.stationary - 1.0).max() <= found.unevenness(rounds) + 1e-12
        overlap = min((laws[j] / laws[u]).min() for u in range(30) for j in range(30)) if laws.min() > 0 else 0.0
        assert found.overlap(rounds) <= overlap + 1e-12


def test_one_user_and_two() -> None:
    assert rounds_of(complete_graph(1), 0.0, "auto") == rounds_of(complete_graph(1), 0.0, "mixing") == 1
    assert mixing_of(complete_graph(1)).overlap(1) == pytest.approx(1.0)
    with pytest.raises(UsageError, match="bipartite"):
        mixing_of(complete_graph(2))
    assert mixing_of(complete_graph(2), 0.5).alpha == pytest.approx(1.0)


def test_before_it_says_anything_the_bound_says_nothing() -> None:
    assert Mixing(10, 20, 2, 0.1, 0.9, 0.0, assured=True).overlap(0) == 0.0


def test_wrong_wishes_are_refused() -> None:
    graph = make_graph(RING, 5, 0)
    with pytest.raises(UsageError, match="auto"):
        rounds_of(graph, 0.0, "enough")
    with pytest.raises(UsageError, match="too many"):
        rounds_of(graph, 0.0, ROUNDS_MAX + 1)
    with pytest.raises(UsageError, match="eta"):
        auto_rounds(mixing_of(graph), 0.0)
    with pytest.raises(UsageError, match="stay"):
        rounds_of(graph, 1.0, 3)


def test_facebook_pages(data_dir: Path) -> None:
    edges = read_edge_list(data_dir / "facebook_pages_edges.csv.gz")
    found = mixing_of(graph_of_edges(edges.n, edges.edges))
    assert (found.second, found.last) == pytest.approx((0.9955602, -0.9734451), abs=5.1e-8)
    assert not found.assured
    assert mixing_rounds(found) == 2257
    assert auto_rounds(found) == 3389
    assert found.overlap(3389) == pytest.approx(0.824, abs=1e-3)
