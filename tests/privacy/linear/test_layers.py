"""Leaks of layered gossip: against the fast way, against dense algebra, and the repair with its printed bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.privacy.linear.krylov import Span, fixed_span
from p2pdp.privacy.linear.layers import (
    Layers,
    View,
    fixed_layers,
    layered_span,
    modular_ranks,
    raised,
    slack_of,
    stochastic_residues,
)
from p2pdp.privacy.linear.modular import MODULUS, PRIMES
from p2pdp.topology.graphs import Graph
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_layers import layer, repaired
from tests.support.gossip_matrices import dense_leaks, graph, grid, view


@pytest.mark.parametrize(
    ("of", "rounds"),
    [(grid(4, 4), 9), (graph("ring", 12), 5), (graph("hypercube", 32), 12), (graph("path", 6), 9), (grid(8, 8), 14)],
    ids=["grid", "ring", "hypercube", "path", "larger grid"],
)
def test_it_agrees_with_the_fast_way(of: Graph, rounds: int) -> None:
    matrix = sparse_weights(of, "metropolis")
    for members in ([0], [5], [1, 4]):
        slow, fast = (
            layered_span(fixed_layers(matrix, rounds), view(of, members, rounds)),
            fixed_span(matrix, of.neighbours, members, rounds),
        )
        assert slow.leaks == pytest.approx(fast.leaks, abs=1e-9)
        assert slow.rank == fast.rank
        assert slow.doubt < 1e-9


def test_rounding_that_grows_with_the_rounds_is_told() -> None:
    of = grid(12, 12)
    matrix = sparse_weights(of, "metropolis")
    slow, fast = layered_span(fixed_layers(matrix, 34), view(of, [5], 34)), fixed_span(matrix, of.neighbours, [5], 34)
    off = float(np.abs(slow.leaks - fast.leaks).max())
    assert off > 1e-6, "where it is not off any more, this test has to look at more rounds"
    assert off < 10 * slow.doubt


def test_changing_steps_are_plain_products() -> None:
    random = np.random.default_rng(4)
    steps = [random.normal(size=(6, 6)) / 3 for _ in range(3)]
    layers = Layers(6, [layer(step) for step in steps])
    seen = {0: [1], 1: [2, 3], 3: [0]}
    rows = [np.eye(6)[1], steps[0][2], steps[0][3], (steps[2] @ steps[1] @ steps[0])[0]]
    for members in ([], [4], [4, 5]):
        span = layered_span(layers, View(seen, members))
        expected = dense_leaks(np.array(rows), members) if members else np.diag(np.linalg.pinv(rows) @ np.array(rows))
        assert span.leaks == pytest.approx(expected, abs=1e-10)
        assert (span.rank, span.rows) == (4 + len(members), 4 + len(members))


def test_who_saw_nothing_learns_nothing() -> None:
    of = graph("ring", 5)
    span = layered_span(fixed_layers(sparse_weights(of, "metropolis"), 3), View({}, [2]))
    assert span.leaks.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_residues_of_rows_add_up_to_one() -> None:
    matrix = sparse_weights(graph("erdos_renyi", 20), "metropolis")
    residues = stochastic_residues(matrix)
    for row in range(20):
        assert sum(residues[matrix.indptr[row] : matrix.indptr[row + 1]].tolist()) % MODULUS == 1


def covariance_leaks(layers: Layers, seen: View) -> Any:
    """mu^2 of each user by the formula of guide/accounting.md, section 1, over all sources."""
    values, draws = np.eye(layers.users), np.zeros((layers.users, layers.noises))
    rows, fresh = [], []
    for number, step in enumerate(layers.steps, start=1):
        values, draws = step.parents @ values, step.parents @ draws + step.noise.toarray()  # type: ignore[union-attr]
        rows += [values[place] for place in seen.seen.get(number, ())]
        fresh += [draws[place] for place in seen.seen.get(number, ())]
    matrix, noise = np.array(rows), np.array(fresh) * layers.deviation
    matrix[:, list(seen.members)] = 0.0
    noise[:, list(seen.drawn)] = 0.0
    inverse = np.linalg.pinv(matrix @ matrix.T + noise @ noise.T, rcond=1e-13)
    return np.einsum("ij,ik,kj->j", matrix, inverse, matrix)


@pytest.mark.parametrize("sigma_m", [0.03, 0.1, 1.0])
def test_noise_on_messages_is_accounted_for_exactly_and_stays_below_the_notes_bound(sigma_m: float) -> None:
    of, rounds = graph("ring", 6), 4
    layers, views, weights = repaired(of, rounds, sigma_m)
    for observer, seen in enumerate(views):
        span = layered_span(layers, seen)
        others = [user for user in range(6) if user != observer]
        assert span.leaks[others] == pytest.approx(covariance_leaks(layers, seen)[others], rel=1e-8, abs=1e-10)
        clean = weights.copy()
        clean[:, observer] = 0.0  # what v sent is subtracted: it knows that
        rows = np.array([np.linalg.matrix_power(clean, at)[w] for at in range(rounds) for w in of.neighbours[observer]])
        rows[:, observer] = 0.0
        inverse = np.linalg.inv(rows @ rows.T + sigma_m**2 * np.eye(len(rows)))
        bound = np.einsum("ij,ik,kj->j", rows, inverse, rows)
        assert np.all(span.leaks[others] <= bound[others] * (1 + 1e-9) + 1e-12)
        assert np.all(span.leaks[others] < 1.0)


def test_more_noise_on_messages_tells_less_and_none_tells_all() -> None:
    of = graph("ring", 6)
    before = np.ones(6)
    for sigma_m in (1e-4, 0.01, 0.1, 1.0, 10.0):
        layers, views, _ = repaired(of, 3, sigma_m)
        now = layered_span(layers, views[0]).leaks
        assert np.all(now[1:] < before[1:])
        before = now
    layers, views, _ = repaired(of, 3, 1e-4)
    assert layered_span(layers, views[0]).leaks[1:] == pytest.approx(np.ones(5), abs=1e-3)


@pytest.mark.parametrize("prime", PRIMES)
def test_ranks_are_those_of_the_basis(prime: int) -> None:
    for of, rounds in ((graph("hypercube", 32), 9), (graph("ring", 9), 30), (grid(4, 5), 12), (graph("star", 7), 4)):
        matrix = sparse_weights(of, "metropolis")
        spans = [fixed_span(matrix, of.neighbours, [user], rounds) for user in range(of.n)]
        views = [view(of, [user], rounds) for user in range(of.n)]
        most = max(span.rank for span in spans)
        assert modular_ranks(fixed_layers(matrix, rounds), views, most, prime) == [span.rank for span in spans]


def test_unequal_weights_whose_rest_is_rounded_are_taken_exactly() -> None:
    of = graph("erdos_renyi", 24)
    matrix = sparse_weights(of, "metropolis")
    span = fixed_span(matrix, of.neighbours, [3], 4)
    assert modular_ranks(fixed_layers(matrix, 4), [view(of, [3], 4)], span.rank, PRIMES[0]) == [span.rank]


def test_a_rank_that_floats_underrate_shows() -> None:
    of = grid(4, 4)
    found = modular_ranks(fixed_layers(sparse_weights(of, "metropolis"), 5), [view(of, [0], 5)], 3, PRIMES[0])
    assert found[0] > 3


def test_who_saw_nothing_knows_its_members() -> None:
    of = graph("ring", 5)
    layers = fixed_layers(sparse_weights(of, "metropolis"), 3)
    assert modular_ranks(layers, [View({}, [1, 2]), View({})], 2, PRIMES[0]) == [2, 0]
    assert modular_ranks(layers, [], 0, PRIMES[0]) == []


def test_leaks_are_rounded_up_and_never_above_the_local_ceiling() -> None:
    span = Span(np.array([0.0, 0.25, 1.0]), 2, 3, 0.3, 1e-16)
    assert raised(span, 2).leaks.tolist() == [0.0, pytest.approx(0.25 + 1e-12, abs=1e-15), 1.0]
    assert raised(replace(span, kept=1e-9), 2).leaks[1] == pytest.approx(0.25 + 1e-5)
    assert raised(replace(span, doubt=0.01), 1).leaks[1] == pytest.approx(0.35)
    assert slack_of(replace(span, doubt=0.01)) == pytest.approx(0.1)


def test_lost_rows_raise_every_leak() -> None:
    found = raised(Span(np.array([0.0, 0.25, 1.0]), 2, 3, 0.3, 1e-16), 3)
    assert found.leaks.tolist() == [1.0, 1.0, 1.0]
    assert found.rank == 3
