"""The formulas of [CEBM22] as printed, and how far they are from what is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.privacy.linear.krylov import fixed_span
from p2pdp.privacy.linear.layers import View, fixed_layers
from p2pdp.privacy.linear.published import corollary_1, theorem_1, theorem_4_alpha_most, theorem_4_leak
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_matrices import graph, grid, powers, view


def test_equation_6_prints_a_third_where_all_is_told() -> None:
    """[CEBM22, Theorem 1] is no bound for a pair (guide/accounting.md, section 3): path a-b-c, T = 2, weights 1/3."""
    of = graph("path", 3)
    matrix = sparse_weights(of, "metropolis")
    printed = theorem_1(fixed_layers(matrix, 2), [view(of, [0], 2)])[:, 0]
    assert printed[2] == pytest.approx(1 / 3)
    assert fixed_span(matrix, of.neighbours, [0], 2).leaks[2] == pytest.approx(1.0)


def test_equation_6_on_opposite_sides_of_a_ring() -> None:
    of = graph("ring", 16)
    printed = theorem_1(fixed_layers(sparse_weights(of, "metropolis"), 8), [view(of, [0], 8)])[:, 0]
    assert printed[8] == pytest.approx(3.2e-6, rel=0.02)
    assert printed[1] > 1.0, "near pairs are counted again and again"


def test_theorem_1_is_the_sum_over_messages_and_theorem_12_counts_each_of_them_once() -> None:
    """[CEBM22, Theorem 1] and [CEBM22, Theorem 12]."""
    of, rounds = grid(3, 4), 5
    matrix = sparse_weights(of, "metropolis")
    layers = fixed_layers(matrix, rounds)
    every = [view(of, [user], rounds) for user in range(12)]
    printed = theorem_1(layers, every)
    for user in range(12):
        rows = powers(matrix, of, user, rounds)
        expected = (rows**2 / (rows**2).sum(axis=1, keepdims=True)).sum(axis=0)
        assert printed[:, user] == pytest.approx(expected)
        assert printed[:, user].sum() == pytest.approx(rounds * of.degree(user)), "what the mean bound rests on"
        told = fixed_span(matrix, of.neighbours, [user], rounds).leaks.sum() - 1
        assert told <= printed[:, user].sum() * (1 + 1e-12)  # equal but for rounding where all rows are orthogonal
    pooled = theorem_1(layers, [view(of, [0, 5], rounds)])[:, 0]
    assert np.all(pooled <= printed[:, 0] + printed[:, 5] + 1e-12)
    assert np.all(pooled >= np.maximum(printed[:, 0], printed[:, 5]) - 1e-12)


def test_corollary_1_is_above_theorem_1_and_made_of_return_probabilities() -> None:
    """[CEBM22, Corollary 1], and [CEBM22, Corollary 3] for users who pool."""
    of, rounds = graph("hypercube", 16), 4
    matrix = sparse_weights(of, "metropolis")
    found = corollary_1(matrix, [[0], [0, 3]], rounds)
    dense = matrix.toarray()
    walks = [np.linalg.matrix_power(dense, at) for at in range(1, rounds + 1)]
    assert found[:, 0] == pytest.approx(16 * 25 * sum(walk[:, 0] ** 2 for walk in walks))
    assert found[:, 1] == pytest.approx(16 * 25 * sum((walk[:, 0] + walk[:, 3]) ** 2 for walk in walks))
    printed = theorem_1(fixed_layers(matrix, rounds), [view(of, [0], rounds)])[:, 0]
    assert np.all(found[1:, 0] >= printed[1:])


def test_nobody_who_saw_anything_and_nobody_to_meet() -> None:
    of = graph("complete", 1)
    matrix = sparse_weights(of, "metropolis")
    assert theorem_1(fixed_layers(matrix, 3), [View({}, [0])]).tolist() == [[0.0]]
    assert corollary_1(matrix, [[0]], 3).tolist() == [[0.0]]


def test_theorem_4_shares_what_is_left_among_those_never_met() -> None:
    n, degree, rounds = 50, 6, 9
    leak = theorem_4_leak(degree * rounds, degree, n - 1 - degree)
    assert leak == pytest.approx(2 * degree * (rounds - 1) / (n - 1 - degree))
    assert leak <= 2 * degree * rounds / (n - degree), "the printed form is above it while T <= n - d"
    most = theorem_4_alpha_most(0.5)
    assert most * (most - 1) == pytest.approx(2 / 0.25)
    assert theorem_4_alpha_most(math.sqrt(2.0)) == pytest.approx((1 + math.sqrt(5)) / 2)


def test_theorem_4_bounds_the_mean_over_random_graphs() -> None:
    """[CEBM22, Theorem 4] holds for the mean over graphs.

    Users whom v does not meet are alike, so the mean over them and over graphs is the mean over one graph's.
    """
    n, rounds = 24, 5
    for seed in range(4):
        of = graph("regular", n, degree=3) if seed == 0 else graph("erdos_renyi", n, seed)
        for observer in range(n):
            span = fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [observer], rounds)
            degree = of.degree(observer)
            far = [user for user in range(n) if user != observer and user not in of.neighbours[observer]]
            assert span.leaks[far].mean() <= theorem_4_leak(degree * rounds, degree, len(far)) / 2 + 1e-12
