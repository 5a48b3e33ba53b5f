"""The bound for noise on messages beside dense formulas, and beside exact replays of runs."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.accounting.gossip_messages import noised_leaks
from p2pdp.protocols.gossip.analysis.views import GossipViews
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_matrices import graph
from tests.support.gossips import gossip, ground_of
from tests.support.runs import quiet

RATIOS = (0.01, 0.1, 1.0)


@pytest.mark.parametrize(
    ("kind", "n", "rounds"), [("ring", 9, 2), ("ring", 9, 12), ("star", 7, 3), ("hypercube", 16, 5)]
)
@pytest.mark.parametrize("gamma", [1.0, 1.3])
def test_it_is_the_formula_of_the_accounting_notes(kind: str, n: int, rounds: int, gamma: float) -> None:
    of = graph(kind, n)
    weights = sparse_weights(of, "metropolis")
    for observer in (0, n - 1):
        heard = of.neighbours[observer]
        cut = weights.toarray()
        cut[observer] = cut[:, observer] = 0.0
        polynomials = [np.eye(n), cut]
        while len(polynomials) < rounds:
            polynomials.append(gamma * cut @ polynomials[-1] + (1 - gamma) * polynomials[-2])
        rows = np.concatenate([one[list(heard)] for one in polynomials[:rounds]])
        for ratio, found in zip(RATIOS, noised_leaks(weights, heard, observer, rounds, gamma, RATIOS), strict=True):
            inverse = np.linalg.inv(rows @ rows.T + ratio**2 * np.eye(len(rows)))
            expected = np.einsum("ij,ik,kj->j", rows, inverse, rows)
            assert found == pytest.approx(expected, abs=1e-9)
            assert found[observer] == 0.0


@pytest.mark.parametrize("terms", ["rounds = 5", "rounds = 4\naccelerated = true"])
@pytest.mark.parametrize(("kind", "n"), [("ring", 8), ("hypercube", 8), ("star", 6), ("path", 5)])
def test_it_bounds_what_a_replay_finds_and_not_by_far(kind: str, n: int, terms: str) -> None:
    for sigma in (0.1, 0.5):  # of own noise 2
        run = quiet(gossip(n, kind, f"{terms}\nmessage_sigma = {sigma}"))
        views, plan, of = GossipViews(ground_of(run)), run.plan.plan, graph(kind, n)
        weights, ratio = sparse_weights(of, "metropolis"), plan.message_noise.scale / plan.noise.scale
        for observer in range(n):
            view = views.view([observer])
            assert view is not None
            exact = views.spans([view]).spans[0].leaks
            (bound,) = noised_leaks(weights, of.neighbours[observer], observer, plan.rounds, plan.gamma, [ratio])
            others = np.arange(n) != observer
            assert np.all(bound[others] >= exact[others] - 1e-11)
            assert np.all(bound[others] <= 1.25 * exact[others] + 1e-6)


def test_who_hears_nobody_is_told_nothing() -> None:
    weights = sparse_weights(graph("complete", 1), "metropolis")
    assert noised_leaks(weights, [], 0, 3, 1.0, [0.5]).tolist() == [[0.0]]
