from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import complete_graph, make_graph
from p2pdp.topology.spectra import METROPOLIS, PRINTED, log_resolvent, spectral_gap, weight_matrix

KINDS = "complete ring path star grid torus exponential erdos_renyi geometric".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [METROPOLIS, PRINTED])
def test_weights_are_symmetric_doubly_stochastic_and_on_edges_only(kind: str, weights: str) -> None:
    graph = make_graph(GraphPart(kind), 24, 3)
    matrix = weight_matrix(graph, weights)
    assert np.array_equal(matrix, matrix.T)
    assert np.allclose(matrix.sum(axis=1), 1.0)
    assert matrix.min() >= -1e-15
    places = {(u, v) for u, row in enumerate(graph.neighbours) for v in row}
    assert {(int(u), int(v)) for u, v in zip(*np.nonzero(matrix), strict=True) if u != v} == places
    for u, v in places:
        largest = max(graph.degree(u), graph.degree(v)) + (weights == METROPOLIS)
        assert matrix[u, v] == pytest.approx(1 / largest)


def test_known_gaps() -> None:
    assert spectral_gap(weight_matrix(complete_graph(7), METROPOLIS)) == pytest.approx(1.0)
    assert spectral_gap(weight_matrix(complete_graph(7), PRINTED)) == pytest.approx(5 / 6)
    ring = make_graph(GraphPart("ring"), 12, 0)
    assert spectral_gap(weight_matrix(ring, METROPOLIS)) == pytest.approx((2 - 2 * math.cos(math.pi / 6)) / 3)
    assert spectral_gap(weight_matrix(ring, PRINTED)) == 0.0, "an even ring has the eigenvalue -1"
    assert spectral_gap(np.ones((1, 1))) == 1.0


def test_the_logarithm_is_the_sum_of_returns() -> None:
    """-ln(I - W + 11'/n) = sum over k >= 1 of (W - 11'/n)^k / k, which converges where W has no eigenvalue -1."""
    matrix = weight_matrix(make_graph(GraphPart("erdos_renyi", probability=0.5), 12, 5), METROPOLIS)
    rest = matrix - 1 / 12
    power, total = np.eye(12), np.zeros((12, 12))
    for k in range(1, 2000):
        power = power @ rest
        total += power / k
    np.testing.assert_allclose(log_resolvent(matrix), total, atol=1e-12)
