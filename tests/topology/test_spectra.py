from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from p2pdp.core.errors import Refused
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import complete_graph, graph_of_edges, make_graph
from p2pdp.topology.spectra import DENSE_MAX, _ends_on_path, gap_at_most, log_resolvent, spectrum_ends
from p2pdp.topology.weights import sparse_weights


def ends(kind: str, n: int, weights: str = "metropolis") -> tuple[float, float]:
    found = spectrum_ends(sparse_weights(make_graph(GraphPart(kind=kind), n, 0), weights))
    assert found.residual < 1e-8
    return found.second, found.last


@pytest.mark.parametrize("n", [5, 12, 601, 1000])
def test_the_ring_in_closed_form(n: int) -> None:
    values = sorted((1 + 2 * math.cos(2 * math.pi * k / n)) / 3 for k in range(n))
    assert ends("ring", n) == pytest.approx((values[-2], values[0]), abs=1e-8)


@pytest.mark.parametrize("n", [701, 100_000])
@pytest.mark.parametrize(("weights", "kept", "moved"), [("metropolis", 1 / 3, 1 / 3), ("lazy", 1 / 2, 1 / 4)])
def test_rings_of_any_size_are_known(n: int, weights: str, kept: float, moved: float) -> None:
    """1 - cos x = 2 sin^2(x / 2), which loses no digits."""
    found = spectrum_ends(sparse_weights(make_graph(GraphPart(kind="ring"), n, 0), weights))
    assert found.residual < 1e-14
    assert found.gap == pytest.approx(4 * moved * math.sin(math.pi / n) ** 2, abs=2e-14)
    assert found.last == pytest.approx(kept - 2 * moved * math.cos(math.pi * (n % 2) / n), abs=1e-14)


def test_what_only_looks_like_a_ring_is_left_to_lanczos() -> None:
    """Two rings, and a ring with an edge of less weight than the others."""
    half = DENSE_MAX
    ring = sparse_weights(make_graph(GraphPart(kind="ring"), half, 0), "metropolis").toarray()
    two = np.block([[ring, np.zeros((half, half))], [np.zeros((half, half)), ring]])
    assert spectrum_ends(two).gap == 0.0
    uneven = sparse_weights(make_graph(GraphPart(kind="ring"), DENSE_MAX + 1, 0), "metropolis").toarray()
    uneven[0, 1] = uneven[1, 0] = 0.2
    uneven[0, 0] = uneven[1, 1] = 1 - 0.2 - 1 / 3
    values = np.linalg.eigvalsh(uneven)
    found = spectrum_ends(uneven)
    assert (found.second, found.last) == pytest.approx((values[-2], values[0]), abs=1e-8)


@pytest.mark.parametrize("m", [2, 4, 10])
def test_the_hypercube_in_closed_form(m: int) -> None:
    assert ends("hypercube", 2**m) == pytest.approx(((m - 1) / (m + 1), (1 - m) / (1 + m)), abs=1e-8)


def test_the_star_in_closed_form() -> None:
    assert ends("star", 9) == pytest.approx((1 - 1 / 9, 0.0), abs=1e-9)


def test_complete_graphs_and_single_nodes_have_the_largest_gap() -> None:
    assert spectrum_ends(sparse_weights(complete_graph(6), "metropolis")).gap == pytest.approx(1.0)
    assert spectrum_ends(np.ones((1, 1))).gap == 1.0


def test_lanczos_agrees_with_the_dense_solver() -> None:
    matrix = sparse_weights(make_graph(GraphPart(kind="regular", degree=4), DENSE_MAX + 40, 3), "metropolis")
    values = np.linalg.eigvalsh(matrix.toarray())
    found = spectrum_ends(matrix)
    assert (found.second, found.last) == pytest.approx((values[-2], values[0]), abs=1e-8)
    assert found.gap <= 1.0 - max(abs(values[-2]), abs(values[0]))


def test_no_gap_is_none() -> None:
    assert spectrum_ends(sparse_weights(make_graph(GraphPart(kind="ring"), 6, 0), "uniform")).gap == 0.0


def test_gaps_of_complete_graphs_and_rings_with_either_weights() -> None:
    def gap(kind: str, n: int, weights: str) -> float:
        return spectrum_ends(sparse_weights(make_graph(GraphPart(kind=kind), n, 0), weights)).gap

    assert gap("complete", 7, "uniform") == pytest.approx(5 / 6)
    assert gap("ring", 12, "metropolis") == pytest.approx((2 - 2 * math.cos(math.pi / 6)) / 3)
    assert gap("ring", 12, "uniform") == 0.0, "an even ring has the eigenvalue -1"


def test_the_logarithm_is_the_sum_of_returns() -> None:
    """-ln(I - W + 11'/n) = sum over k >= 1 of (W - 11'/n)^k / k, which converges where W has no eigenvalue -1."""
    matrix = sparse_weights(make_graph(GraphPart("erdos_renyi", probability=0.5), 12, 5), "metropolis")
    rest = matrix.toarray() - 1 / 12
    power, total = np.eye(12), np.zeros((12, 12))
    for k in range(1, 2000):
        power = power @ rest
        total += power / k
    np.testing.assert_allclose(log_resolvent(matrix), total, atol=1e-12)


def test_another_first_eigenvector_may_be_known() -> None:
    """Of D^(-1/2) A D^(-1/2) it is the root of the degrees."""
    graph = make_graph(GraphPart("erdos_renyi"), DENSE_MAX + 40, 3)
    adjacency = sparse_weights(graph, "uniform").toarray() > 0
    np.fill_diagonal(adjacency, val=False)
    degrees = adjacency.sum(axis=1)
    form = adjacency / np.sqrt(np.outer(degrees, degrees))
    values = np.linalg.eigvalsh(form)
    found = spectrum_ends(form, np.sqrt(degrees / degrees.sum()))
    assert (found.second, found.last) == pytest.approx((values[-2], values[0]), abs=1e-8)


@pytest.mark.parametrize(("n", "weights"), [(701, "metropolis"), (30_000, "metropolis"), (100_000, "lazy")])
def test_paths_of_any_size_are_known(n: int, weights: str) -> None:
    """The second eigenvector of a path is a cosine: 1 - second = 2 w (1 - cos(pi / n)), w the weight of its edges."""
    matrix = sparse_weights(make_graph(GraphPart(kind="path"), n, 0), weights)
    moved = float(matrix[[0], [1]][0])
    found = _ends_on_path(matrix) if n < 1000 else spectrum_ends(matrix)
    assert found is not None
    assert found.residual < 1e-13
    assert found.gap == pytest.approx(4 * moved * math.sin(math.pi / 2 / n) ** 2, abs=5e-14)
    assert _ends_on_path(sparse_weights(make_graph(GraphPart(kind="ring"), 701, 0), "metropolis")) is None


def test_users_of_a_path_may_have_any_numbers_and_weights() -> None:
    random = np.random.default_rng(1)
    across, places = random.uniform(0.1, 0.4, DENSE_MAX), random.permutation(DENSE_MAX + 1)
    along = np.diag(across, 1) + np.diag(across, -1)
    along += np.diag(1.0 - along.sum(axis=0))
    mixed = along[np.ix_(places, places)]
    values = np.linalg.eigvalsh(mixed)
    found = _ends_on_path(csr_array(mixed))
    assert found is not None
    assert (found.second, found.last) == pytest.approx((values[-2], values[0]), abs=1e-13)


@pytest.mark.parametrize(("kind", "n"), [("path", 300), ("star", 50), ("grid", 100), ("regular", 60), ("complete", 9)])
def test_distances_never_tell_too_small_a_gap(kind: str, n: int) -> None:
    matrix = sparse_weights(make_graph(GraphPart(kind=kind, degree=4 if kind == "regular" else None), n, 0), "lazy")
    assert 1.0 - np.linalg.eigvalsh(matrix.toarray())[-2] <= gap_at_most(matrix, np.full(n, n**-0.5)) + 1e-12


def test_what_mixes_too_slowly_is_refused_by_name() -> None:
    """A line of users with a twig at each of them."""
    n = 60_000
    edges = [(at, at + 1) for at in range(n // 2 - 1)] + [(at, at + n // 2) for at in range(n // 2)]
    with pytest.raises(Refused, match=r"^\[graph\]: it mixes so slowly"):
        spectrum_ends(sparse_weights(graph_of_edges(n, edges), "metropolis"))
