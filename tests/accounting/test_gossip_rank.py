from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2pdp.accounting.gossip_krylov import Span, fixed_span
from p2pdp.accounting.gossip_layers import View, fixed_layers
from p2pdp.accounting.gossip_rank import modular_ranks, raised, slack_of
from p2pdp.accounting.modular_rank import PRIMES
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_matrices import graph, grid, view


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
