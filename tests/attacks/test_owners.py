"""Chances of owners, against sums over all assignments."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from p2pdp.attacks.owners import by_scaling, by_sets, owners_of_all, owners_of_single
from p2pdp.core.errors import Refused
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix


def laws_of(n: int, rounds: int, kind: str = "ring", stay: float = 0.2) -> np.ndarray:
    return all_laws(walk_matrix(make_graph(GraphPart(kind), n, 1), stay), rounds)


def by_hand(laws: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """The chance that user u is at holder h: over all orders of the users on the places that holders have."""
    places = np.repeat(np.arange(len(loads)), loads)
    found = np.zeros(laws.shape)
    for order in permutations(range(len(laws))):
        weight = np.prod([laws[user, place] for user, place in zip(order, places, strict=True)])
        for user, place in zip(order, places, strict=True):
            found[place, user] += weight
    return found / found.sum(axis=0)


@pytest.mark.parametrize("loads", [[1, 1, 1, 1, 1], [2, 0, 3, 0, 0], [0, 1, 2, 1, 1]])
@pytest.mark.parametrize("rounds", [2, 6])
def test_of_few_users_all_assignments_are_summed(loads: list[int], rounds: int) -> None:
    laws, counts = laws_of(5, rounds), np.array(loads)
    expected = by_hand(laws, counts)
    np.testing.assert_allclose(by_sets(laws.T, counts), expected, atol=1e-12)
    np.testing.assert_allclose(owners_of_all(laws, counts), expected, atol=1e-12)
    np.testing.assert_allclose(by_scaling(laws.T, counts), expected, atol=0.1)


def test_scaled_rows_are_loads_and_columns_are_users() -> None:
    laws = laws_of(40, 7)
    loads = np.bincount(np.random.default_rng(2).integers(40, size=40), minlength=40)
    found = owners_of_all(laws_of(40, 400), loads)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.sum(axis=1), loads, atol=1e-6)
    np.testing.assert_allclose(found, np.outer(loads, np.full(40, 1 / 40)), rtol=0.2, atol=1e-6)
    near = owners_of_all(laws, np.ones(40, dtype=np.int64))
    assert np.all(near[laws.T == 0.0] == 0.0)


def test_who_cannot_have_come_there_did_not() -> None:
    """After one round on a path of three without staying the ends are in the middle, for certain."""
    laws = laws_of(3, 1, "path", 0.0)
    found = owners_of_all(laws, np.array([1, 2, 0]))
    np.testing.assert_allclose(found, [[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    with pytest.raises(Refused, match="somebody was late"):
        owners_of_all(laws, np.array([3, 0, 0]))


@pytest.mark.parametrize("kind", ["ring", "star", "complete"])
def test_of_single_each_holder_hands_in_a_uniform_one_of_its_own(kind: str) -> None:
    laws = laws_of(4, 3, kind)
    expected = np.zeros((4, 4))
    for places in product(range(4), repeat=4):
        weight = np.prod([laws[user, place] for user, place in enumerate(places)])
        for user, place in enumerate(places):
            expected[place, user] += weight / places.count(place)
    np.testing.assert_allclose(owners_of_single(laws), expected, atol=1e-13)
    empty = np.prod(1.0 - laws, axis=0)
    np.testing.assert_allclose(owners_of_single(laws).sum(axis=1), 1.0 - empty)


def test_one_user_is_itself() -> None:
    assert owners_of_all(np.ones((1, 1)), np.array([1]))[0, 0] == 1.0
    assert owners_of_single(np.ones((1, 1)))[0, 0] == 1.0
