"""Known answers of guide/accounting.md, section 3, and the projections they come from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.experiments.gossip_leaks import distances_from
from p2pdp.privacy.linear.descent import without
from p2pdp.privacy.linear.krylov import extended, fixed_span, leaks_of, noised_leaks
from p2pdp.privacy.linear.layers import View, fixed_layers, layered_span
from p2pdp.protocols.gossip.analysis.pair_noise import laplacian_of
from p2pdp.protocols.gossip.analysis.views import GossipViews
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_matrices import dense_leaks, graph, grid, powers
from tests.support.gossips import context_of, gossip
from tests.support.runs import quiet


def test_on_a_path_of_three_everybody_learns_everything() -> None:
    of = graph("path", 3)
    for observer in range(3):
        span = fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [observer], 2)
        assert span.leaks == pytest.approx(np.ones(3), abs=1e-14)


@pytest.mark.parametrize("rounds", [1, 3, 7, 8, 20])
def test_on_a_ring_all_within_as_many_edges_as_rounds_are_decoded_and_nobody_else(rounds: int) -> None:
    of = graph("ring", 16)
    span = fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [3], rounds)
    distances = np.array(distances_from(of, 3))
    assert span.leaks == pytest.approx((distances <= rounds).astype(float), abs=1e-12)
    assert np.all(span.leaks[distances > rounds] == 0.0), "what cannot have arrived leaks exactly nothing"


def test_on_a_complete_graph_one_round_tells_all() -> None:
    of = graph("complete", 5)
    assert fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [2], 1).leaks == pytest.approx(np.ones(5))


@pytest.mark.parametrize("m", [2, 3, 5, 7])
def test_a_hypercube_leaks_m_over_binomial(m: int) -> None:
    of = graph("hypercube", 2**m)
    span = fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [5 % 2**m], m + 3)
    assert span.rank == m * (m - 1) + 2
    for user, distance in enumerate(distances_from(of, 5 % 2**m)):
        known = 1.0 if distance in (0, m) else m / math.comb(m, distance)
        assert span.leaks[user] == pytest.approx(known, abs=1e-12)


def test_a_large_grid_has_its_known_rank_and_mean() -> None:
    """Dense powers see a sixth of it (guide/accounting.md, section 3); and users a long way off are not read at all."""
    of = grid(45, 45)
    span = fixed_span(sparse_weights(of, "metropolis"), of.neighbours, [20], 243)
    assert span.rank == span.rows == 730
    assert (span.leaks.sum() - 1.0) / 2024 == pytest.approx(729 / 2024, rel=1e-12)
    assert span.kept > 1e-3


@pytest.mark.parametrize("observer", [0, 6])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_few_rounds_are_plain_projections(observer: int, rounds: int) -> None:
    for of in (grid(3, 4), graph("regular", 12, degree=3), graph("star", 12)):
        for weights in ("metropolis", "maxdegree", "lazy"):
            matrix = sparse_weights(of, weights)
            rows = powers(matrix, of, observer, rounds).reshape(-1, 12)
            span = fixed_span(matrix, of.neighbours, [observer], rounds)
            assert span.leaks == pytest.approx(dense_leaks(rows, [observer]), abs=1e-9)
            assert span.leaks.sum() == pytest.approx(span.rank)


def test_users_who_pool_are_one_observer() -> None:
    of = grid(4, 4)
    matrix = sparse_weights(of, "metropolis")
    rows = np.concatenate([powers(matrix, of, member, 3) for member in (0, 1, 15)])
    span = fixed_span(matrix, of.neighbours, [0, 1, 15], 3)
    assert span.leaks == pytest.approx(dense_leaks(rows, [0, 1, 15]), abs=1e-9)
    alone = fixed_span(matrix, of.neighbours, [0], 3)
    assert np.all(span.leaks >= alone.leaks - 1e-12)


def test_more_rounds_never_tell_less_and_whoever_hears_nobody_knows_itself() -> None:
    of = grid(4, 5)
    matrix = sparse_weights(of, "metropolis")
    before = np.zeros(20)
    for rounds in range(12):
        now = fixed_span(matrix, of.neighbours, [7], rounds).leaks
        assert np.all(now >= before - 1e-10)
        before = now
    single = fixed_span(sparse_weights(graph("complete", 1), "metropolis"), [[]], [0], 5)
    assert single.leaks.tolist() == [1.0]


def test_what_is_in_the_span_already_adds_nothing() -> None:
    basis = np.eye(5)[:, :3]
    added, kept, dropped = extended(basis, np.array([[1.0, 2.0], [0.5, 0.0], [0.0, 1.0], [0.0, 1e-3], [0.0, 0.0]]))
    assert np.abs(added[:, 0]).tolist() == pytest.approx([0.0, 0.0, 0.0, 1.0, 0.0])
    assert kept == pytest.approx(1e-3)
    assert dropped < 1e-15
    nothing, _, _ = extended(np.eye(5), np.ones((5, 1)))
    assert nothing.shape == (5, 0)


RATIOS = (0.01, 0.1, 1.0)


@pytest.mark.parametrize(
    ("kind", "n", "rounds"), [("ring", 9, 2), ("ring", 9, 12), ("star", 7, 3), ("hypercube", 16, 5)]
)
@pytest.mark.parametrize("gamma", [1.0, 1.3])
@pytest.mark.parametrize("shared", [0.0, 5.0])
def test_it_is_the_formula_of_the_accounting_notes(kind: str, n: int, rounds: int, gamma: float, shared: float) -> None:
    of = graph(kind, n)
    spread = np.eye(n) + shared * laplacian_of(n, np.array(list(of.edges())))
    weights = sparse_weights(of, "metropolis")
    for observer in (0, n - 1):
        heard = of.neighbours[observer]
        cut = weights.toarray()
        cut[observer] = cut[:, observer] = 0.0
        polynomials = [np.eye(n), cut]
        while len(polynomials) < rounds:
            polynomials.append(gamma * cut @ polynomials[-1] + (1 - gamma) * polynomials[-2])
        rows = np.concatenate([one[list(heard)] for one in polynomials[:rounds]])
        told = noised_leaks(weights, heard, observer, rounds, gamma, RATIOS, spread if shared else None)
        for ratio, found in zip(RATIOS, told, strict=True):
            inverse = np.linalg.inv(rows @ spread @ rows.T + ratio**2 * np.eye(len(rows)))
            expected = np.einsum("ij,ik,kj->j", rows, inverse, rows)
            assert found == pytest.approx(expected, abs=1e-9)
            assert found[observer] == 0.0


@pytest.mark.parametrize("terms", ["rounds = 5", "rounds = 4\naccelerated = true"])
@pytest.mark.parametrize(("kind", "n"), [("ring", 8), ("hypercube", 8), ("star", 6), ("path", 5)])
def test_it_bounds_what_a_replay_finds_and_not_by_far(kind: str, n: int, terms: str) -> None:
    for sigma in (0.1, 0.5):  # of own noise 2
        run = quiet(gossip(n, kind, f"{terms}\nmessage_sigma = {sigma}"))
        views, plan, of = GossipViews(context_of(run)), run.plan.plan, graph(kind, n)
        weights, ratio = sparse_weights(of, "metropolis"), plan.message_noise.scale / plan.noise.scale
        for observer in range(n):
            view = views.view([observer])
            assert view is not None
            exact = views.spans([view]).spans[0].leaks
            (bound,) = noised_leaks(weights, of.neighbours[observer], observer, plan.rounds, plan.gamma, [ratio])
            others = np.arange(n) != observer
            assert np.all(bound[others] >= exact[others] - 1e-11)
            assert np.all(bound[others] <= 1.25 * exact[others] + 1e-6)


@pytest.mark.parametrize("kind", ["ring", "star", "hypercube"])
def test_noise_that_users_share_is_part_of_what_was_seen(kind: str) -> None:
    of, n = graph(kind, 8), 8
    weights = sparse_weights(of, "metropolis")
    for members in ([0], [1, 6]):
        spread = np.eye(n) + without(7.0 * laplacian_of(n, np.array(list(of.edges()))), members)
        near = sorted({one for member in members for one in of.neighbours[member]})
        powers = [np.linalg.matrix_power(weights.toarray(), number) for number in range(3)]
        rows = np.concatenate([power[near] for power in powers])
        rows[:, members] = 0.0
        expected = np.einsum("ij,ik,kj->j", rows, np.linalg.pinv(rows @ spread @ rows.T, rcond=1e-11), rows)
        expected[members] = 1.0
        found = fixed_span(weights, of.neighbours, members, 3, spread)
        assert found.leaks == pytest.approx(expected, abs=1e-9)
        assert np.all(found.leaks <= fixed_span(weights, of.neighbours, members, 3).leaks + 1e-12)
        layers = fixed_layers(weights, 3)
        seen = View(dict.fromkeys(range(3), near), members, (), spread)
        assert layered_span(layers, seen).leaks == pytest.approx(expected, abs=1e-9)
    assert leaks_of(np.zeros((4, 0)), np.eye(4)).tolist() == [0.0] * 4


def test_who_hears_nobody_is_told_nothing() -> None:
    weights = sparse_weights(graph("complete", 1), "metropolis")
    assert noised_leaks(weights, [], 0, 3, 1.0, [0.5]).tolist() == [[0.0]]
