"""The filter against all rows of a small run written out, and what follows from known answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from p2pdp.core.arrays import Floats
from p2pdp.privacy.linear.descent import Course, told, unclipped, without, worst
from p2pdp.protocols.gossip.analysis.pair_noise import laplacian_of
from p2pdp.topology.graphs import complete_graph, graph_of_edges
from p2pdp.topology.weights import drawn_pairs, meeting_weights, sparse_weights

N, COUNT, BLOCK = 7, 4, 3
RING = sparse_weights(graph_of_edges(N, [(user, (user + 1) % N) for user in range(N)]), "metropolis")
PATH = sparse_weights(graph_of_edges(3, [(0, 1), (1, 2)]), "metropolis")


def changing(rounds: int) -> list[Any]:
    random = np.random.default_rng(1)
    return [meeting_weights(N, drawn_pairs(N, 0.4, random), "metropolis", N - 1) for _ in range(rounds)]


class Everything:
    """Each state as a row over all gradients and all draws on messages; the observers' rows, and what they know."""

    def __init__(self, course: Course, members: list[int]) -> None:
        self.course, self.members = course, members
        size, count = course.users, course.gradients
        edges = sum(int((matrix.toarray() != 0).sum()) for matrix in course.matrices)
        self.state = np.zeros((size, size * count + edges))
        self.before, self.next = self.state, size * count
        self.rows: list[Floats] = []
        for number, matrix in enumerate(course.matrices):
            if number % course.block == 0:
                self.state = self.state * course.shrink[number // course.block]
                for user in range(size):
                    self.state[user, user * count + number // course.block] += course.gain[number // course.block]
            self.round(matrix.toarray(), course.gamma if number % course.block else 1.0)
        table = np.array(self.rows or [np.zeros(self.state.shape[1])])
        for member in members:
            table[:, member * count : (member + 1) * count] = 0.0
        self.table = table

    def round(self, weights: Floats, gamma: float) -> None:
        moved = weights @ self.state
        for to, sender in zip(*np.nonzero(weights), strict=True):
            if to == sender:
                continue
            message = self.state[sender].copy()
            if sender not in self.members:  # who knows what it drew
                message[self.next] += self.course.ratio
                moved[to, self.next] += weights[to, sender] * self.course.ratio
                if to in self.members:
                    self.rows.append(message)
            self.next += 1
        self.before, self.state = self.state, gamma * moved + (1.0 - gamma) * self.before

    def grams(self) -> Floats:
        size, count = self.course.users, self.course.gradients
        covariance = np.eye(self.table.shape[1])
        if self.course.shared is not None:
            left = np.setdiff1d(np.arange(size), self.members)
            for one, other in zip(*np.nonzero(np.triu(self.course.shared[np.ix_(left, left)], 1)), strict=True):
                amount = -self.course.shared[left[one], left[other]]
                for number in range(count):  # a draw of its own for each gradient
                    ends = [left[one] * count + number, left[other] * count + number]
                    covariance[np.ix_(ends, ends)] += amount * np.array([[1.0, -1.0], [-1.0, 1.0]])
        values, vectors = np.linalg.eigh(self.table @ covariance @ self.table.T)
        kept = values > 1e-11 * max(values[-1], 1e-300)
        white = (vectors[:, kept] / np.sqrt(values[kept])).T @ self.table
        parts = white[:, : size * count].reshape(-1, size, count).transpose(1, 2, 0)
        return np.asarray(parts @ parts.transpose(0, 2, 1))


@pytest.mark.parametrize("matrices", [[RING] * 12, changing(12)], ids=["ring", "changing"])
@pytest.mark.parametrize("gamma", [1.0, 1.3])
@pytest.mark.parametrize("ratio", [0.0, 0.3])
@pytest.mark.parametrize("members", [[0], [0, 3], [1, 2, 5]])
@pytest.mark.parametrize("shared", [None, 4.0])
def test_it_is_what_all_rows_tell(
    matrices: list[Any], gamma: float, ratio: float, members: list[int], shared: float | None
) -> None:
    laplacian = None if shared is None else shared * laplacian_of(N, np.array([*pairwise(range(N)), (0, N - 1)]))
    course = Course(matrices, BLOCK, gamma, [0.9, 0.8, 0.95, 0.7], [0.5, 0.5, 0.4, 0.3], ratio, laplacian)
    found = told(course, members)
    np.testing.assert_allclose(found.grams, Everything(course, members).grams(), rtol=0, atol=1e-11)
    assert not found.grams[members].any()
    assert found.kept > 1e-3
    assert found.dropped < 1e-12


def test_whoever_nobody_writes_to_learns_nothing() -> None:
    alone = meeting_weights(4, [(1, 2), (2, 3)], "metropolis", 3)
    found = told(Course([alone] * 4, 2, 1.0, [1.0, 1.0], [0.5, 0.5]), [0])
    assert not found.grams.any()
    assert worst(found.grams).tolist() == [0.0] * 4


def test_on_a_complete_graph_every_gradient_is_told() -> None:
    weights = sparse_weights(complete_graph(5), "metropolis")
    found = told(Course([weights] * 6, 2, 1.0, [1.0] * 3, [0.5] * 3), [0])
    np.testing.assert_allclose(found.grams[1:], np.tile(np.eye(3), (4, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(worst(found.grams), [0.0, 3.0, 3.0, 3.0, 3.0], atol=1e-12)


def test_the_far_end_of_a_path_is_told_a_round_later() -> None:
    """With one round a block user 2's first gradient comes to user 0 within user 1's state, beside a fresh one."""
    one = told(Course([PATH], 1, 1.0, [1.0], [1.0]), [0])
    assert one.grams[2, 0, 0] == 0.0
    two = told(Course([PATH] * 2, 1, 1.0, [1.0, 1.0], [1.0, 1.0]), [0])
    # x_1 after a round: (y_0 + y_1 + y_2) / 3, then y_1' on top: of y_2 there is 1/9 beside noise of 1.
    assert two.grams[2, 0, 0] == pytest.approx((1 / 9) / (1 / 9 + 1.0), abs=1e-12)


def test_the_worst_gradients_are_a_bound_that_is_reached() -> None:
    gram = np.array([[[0.5, 0.25], [0.25, 0.5]], [[0.5, -0.25], [-0.25, 0.5]], [[1.0, 0.0], [0.0, 1.0]]])
    assert worst(gram) == pytest.approx([1.5, 1.5, 2.0])
    random = np.random.default_rng(3)
    for _ in range(50):
        root = random.normal(size=(4, 4))
        some = root @ root.T
        some /= np.linalg.eigvalsh(some)[-1]
        moves = random.normal(size=(4, 2))
        moves /= np.linalg.norm(moves, axis=1)[:, None]
        assert float(np.sum(some * (moves @ moves.T))) <= worst(some[None])[0] + 1e-12


def test_noise_on_messages_tells_less() -> None:
    leaks = [
        worst(told(Course([RING] * 12, BLOCK, 1.0, [1.0] * 4, [0.5] * 4, ratio), [0]).grams)
        for ratio in (0.0, 0.01, 0.1, 1.0)
    ]
    for more, less in pairwise(leaks):
        assert (less <= more + 1e-9).all()
    np.testing.assert_allclose(leaks[1], leaks[0], rtol=0.2)


def test_the_chance_of_clipping_bounds_what_happens() -> None:
    """Against runs with noise: of examples of length 1 nobody's state is ever farther off than that says."""
    course = Course([PATH] * 8, 2, 1.0, [0.5] * 4, [0.5] * 4)
    assert unclipped(course, 1.0, 1.5, 1.0, 2) == 1.0, "states alone may be so long"
    chance = unclipped(course, 1.0, 4.0, 1.0, 2)
    random, far = np.random.default_rng(5), 0
    dense = PATH.toarray()
    means = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    for _ in range(4000):
        state, longest = np.zeros((3, 2)), 0.0
        for _ in range(4):
            longest = max(longest, float(np.linalg.norm(state + means, axis=1).max()))
            state = dense @ dense @ (0.5 * state + 0.5 * (means + random.normal(size=(3, 2))))
        far += longest > 4.0
    assert far / 4000 <= chance < 0.2
    assert unclipped(course, 1.0, 40.0, 1.0, 2) < 1e-100
    assert unclipped(course, 1.0, 40.0, 0.0, 2) == 0.0


def test_edges_of_members_are_taken_out_of_a_laplacian() -> None:
    laplacian = laplacian_of(4, np.array([(0, 1), (1, 2), (2, 3), (0, 3)]))
    assert laplacian.tolist() == [[2, -1, 0, -1], [-1, 2, -1, 0], [0, -1, 2, -1], [-1, 0, -1, 2]]
    np.testing.assert_array_equal(without(laplacian, [1]), laplacian_of(4, np.array([(2, 3), (0, 3)])))
    np.testing.assert_array_equal(without(laplacian, []), laplacian)


def test_noise_that_users_share_makes_clipping_more_likely() -> None:
    laplacian = 4.0 * laplacian_of(N, np.array([*pairwise(range(N)), (0, N - 1)]))
    terms = ([RING] * 12, BLOCK, 1.0, [0.9] * 4, [1.0] * 4)
    alone, shared = (unclipped(Course(*terms, 0.0, one), 1.0, 6.0, 1.0, 2) for one in (None, laplacian))
    assert 0.0 < 2.0 * alone < shared < 1.0
