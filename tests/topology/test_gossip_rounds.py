from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.topology.gossip_rounds import acceleration, activations_needed, rounds_needed
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import sparse_weights


@given(st.floats(1e-9, 1.0))
def test_gamma_is_between_one_and_two(gap: float) -> None:
    """[CEBM22, Definition 3]."""
    assert 1.0 <= acceleration(gap) <= 2.0


def test_gamma_as_algorithm_1_has_it() -> None:
    gap = 0.3
    expected = 2 * (1 - math.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2
    assert acceleration(gap) == pytest.approx(expected, rel=1e-15)
    assert acceleration(1.0) == pytest.approx(acceleration(1.0 - 1e-12), rel=1e-9)


@pytest.mark.parametrize(("kind", "n"), [("ring", 20), ("hypercube", 32), ("grid", 25), ("path", 12), ("complete", 8)])
@pytest.mark.parametrize("accelerated", [False, True])
def test_after_so_many_rounds_the_error_is_what_theorem_2_says(kind: str, n: int, accelerated: bool) -> None:
    """[CEBM22, Theorem 2].

    Half the mean square error is at most 3 sigma^2 / n, exactly computed for the worst spread of values.
    """
    matrix = sparse_weights(make_graph(GraphPart(kind=kind), n, 0), "metropolis").toarray()
    gap = spectrum_ends(matrix).gap
    sigma, span = 0.5, 1.0
    rounds = rounds_needed(gap, n, sigma, span, 1, accelerated=accelerated)
    before, now = np.eye(n), matrix.copy()
    gamma = acceleration(gap) if accelerated else 1.0
    for _ in range(rounds - 1):
        before, now = now, gamma * matrix @ now + (1 - gamma) * before
    values = np.where(np.arange(n) < n // 2, 0.0, span)  # as far apart as bounds allow
    bias = now @ values - values.mean()
    variance = sigma**2 * np.sum(now**2)
    assert 0.5 * (np.sum(bias**2) + variance) / n <= 3 * sigma**2 / n
    np.testing.assert_allclose(now.sum(axis=0), 1.0, atol=1e-9)


def test_fewer_rounds_where_it_is_faster() -> None:
    slow = rounds_needed(0.01, 50, 1.0, 1.0, 1, accelerated=False)
    fast = rounds_needed(0.01, 50, 1.0, 1.0, 1, accelerated=True)
    assert fast * 9 < slow
    assert activations_needed(0.01, 50, 1.0, 1.0, 1) == slow
    assert rounds_needed(1.0, 1, 1.0, 1.0, 1, accelerated=True) == 1
    assert rounds_needed(0.5, 10, 0.0, 1.0, 1, accelerated=True) > 1
    assert rounds_needed(0.5, 10, 0.0, 0.0, 1, accelerated=True) == 1


@pytest.mark.parametrize("gap", [0.0, -0.1, 1.1, math.nan])
def test_without_a_gap_there_is_no_end(gap: float) -> None:
    for ask in (acceleration, lambda one: rounds_needed(one, 5, 1.0, 1.0, 1, accelerated=True)):
        with pytest.raises(UsageError, match="spectral gap"):
            ask(gap)
