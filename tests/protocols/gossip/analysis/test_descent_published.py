from __future__ import annotations

import numpy as np
import pytest

from p2pdp.privacy.linear.descent import told, worst
from p2pdp.protocols.gossip.analysis.descent_published import printed_leaks
from p2pdp.protocols.gossip.analysis.descent_views import course_of
from p2pdp.topology.graphs import graph_of_edges
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_learners import MEAN, gossip_learning
from tests.support.runs import quiet


def test_with_one_round_a_block_nothing_is_printed_for_strangers() -> None:
    """[CEBM22, Theorem 6] is no bound.

    The far end of a path: its gradients come with the neighbour's state of the next block, all the same.
    """
    plan = quiet(gossip_learning(3, "path", "rounds = 1")).plan.plan
    matrices = [sparse_weights(graph_of_edges(3, [(0, 1), (1, 2)]), "metropolis")] * plan.rounds
    printed = printed_leaks(plan, matrices, [[0], [2]])
    assert printed[:, 0].tolist() == [0.0, 3.0, 0.0]
    leak = worst(told(course_of(plan, matrices, 0.0), [0]).grams)
    assert leak[2] > 0.1 > printed[2, 0]


def test_equation_8_is_t_times_that_of_averaging() -> None:
    """[CEBM22, Theorem 6], K = 2: y_w, then all of w's neighbourhood in thirds."""
    plan = quiet(gossip_learning(3, "path", "rounds = 2")).plan.plan
    weights = sparse_weights(graph_of_edges(3, [(0, 1), (1, 2)]), "metropolis")
    assert printed_leaks(plan, [weights] * 6, [[0]])[:, 0] == pytest.approx([1.0, 3.0 * (1.0 + 1 / 3), 1.0])
    again = printed_leaks(plan, [weights.copy() for _ in range(6)], [[0]])
    np.testing.assert_allclose(again, printed_leaks(plan, [weights] * 6, [[0]]))


def test_violated_pairs_are_counted_where_the_leak_is_exact() -> None:
    audit = quiet(gossip_learning(5, "path", "rounds = 1", task=MEAN, sigma=4.0)).audit()
    (claim,) = [one for one in audit.claims if one.method == "published:theorem-6"]
    assert not claim.bound
    assert claim.violated_pairs == 12, "all pairs that are no neighbours"
    assert audit.published is not None
    assert audit.published[4, 0] == 0.0
    model = quiet(gossip_learning(5, "changing")).audit()
    assert {one.method: one.violated_pairs for one in model.claims if one.method.startswith("published")} == {
        "published:theorem-11": None,
        "published:proposition-1": None,
    }


def test_colluders_are_one_node() -> None:
    plan = quiet(gossip_learning(4, "path", "rounds = 1")).plan.plan
    weights = sparse_weights(graph_of_edges(4, [(0, 1), (1, 2), (2, 3)]), "metropolis")
    assert printed_leaks(plan, [weights] * 3, [[0, 1]])[2:, 0].tolist() == [3.0, 0.0]


def test_on_changing_graphs_blocks_add_up() -> None:
    """[CEBM22, Theorem 11]: what each neighbour of a round sends, by dense matrices, with another graph each round."""
    plan = quiet(gossip_learning(4, "path", "rounds = 2")).plan.plan
    graphs = ([(0, 1), (2, 3)], [(0, 1), (1, 2)], [(1, 3)], [(0, 1), (0, 2), (2, 3)])
    matrices = [sparse_weights(graph_of_edges(4, graphs[at % 4]), "metropolis") for at in range(2 * plan.gradients)]
    expected = np.zeros(4)
    for block in range(plan.gradients):
        states = np.eye(4)
        for matrix in matrices[2 * block : 2 * block + 2]:
            dense = matrix.toarray()
            for neighbour in (peer for peer in range(1, 4) if dense[0, peer] > 0.0):
                expected += states[neighbour] ** 2 / float(states[neighbour] @ states[neighbour])
            states = dense @ states
    np.testing.assert_allclose(printed_leaks(plan, matrices, [[0]])[1:, 0], expected[1:], atol=1e-12)
    assert len(set(expected[1:].tolist())) == 3
