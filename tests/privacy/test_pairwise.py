from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import Refused
from p2pdp.core.spec import GraphPart
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import leaks_to_each, mask_leaks, own_sigma, pair_leaks, pair_noise
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from tests.support.leaks import general_leak

DELTA = 1e-5


def graph_of(drawn: nx.Graph) -> Graph:
    return graph_of_edges(drawn.number_of_nodes(), list(drawn.edges))


def regular(n: int, degree: int, seed: int) -> Graph:
    return graph_of(nx.random_regular_graph(degree, n, seed=seed))


RING = graph_of(nx.cycle_graph(8))
STAR = graph_of(nx.star_graph(5))
COMPLETE = complete_graph(8)


@pytest.mark.parametrize(
    ("graph", "sigma", "pair_sigma", "alone", "colluded"),
    [
        (RING, 1.0, 3.0, 0.189274966583, 0.295222696572),
        (RING, 0.5, 10.0, 0.506542072055, 0.681829606119),
        (COMPLETE, 1.0, 3.0, 0.13698630137, 0.181818181818),
        (COMPLETE, 0.5, 10.0, 0.50109340831, 0.668054977093),
        (STAR, 1.0, 3.0, 0.247272727273, 1.0),
        (STAR, 0.5, 10.0, 0.674702248959, 4.0),
    ],
)
def test_known_answers(graph: Graph, sigma: float, pair_sigma: float, alone: float, colluded: float) -> None:
    assert np.nanmax(pair_leaks(graph, sigma, pair_sigma)) == pytest.approx(alone, rel=1e-9, abs=1e-11)
    assert np.nanmax(pair_leaks(graph, sigma, pair_sigma, [0, 1])) == pytest.approx(colluded, rel=1e-9, abs=1e-11)


def seen_by(graph: Graph, sigma: float, pair_sigma: float, known: set[int], unseen: set[int], user: int) -> float:
    """The leak from all rows that the observer gets, with one column for each draw that it does not know."""
    edges = [edge for edge in graph.edges() if not known & set(edge)]
    rows = [peer for peer in range(graph.n) if peer not in known | unseen]
    noise = np.zeros((len(rows), graph.n + len(edges)))
    for row, peer in enumerate(rows):
        noise[row, peer] = sigma
        for column, (low, high) in enumerate(edges):
            noise[row, graph.n + column] = pair_sigma * ((peer == low) - (peer == high))
    moved = np.array([[float(peer == user)] for peer in rows])
    return general_leak(noise, moved)


@given(st.integers(2, 12), st.floats(0.05, 0.7), st.sampled_from([0.1, 1.0, 30.0]), st.integers(0, 2**32))
def test_leaks_are_those_of_all_that_the_observer_sees(n: int, density: float, ratio: float, seed: int) -> None:
    """[SBR22]: against the covariance of the rows, draw by draw, for any graph, colluders and vanished users."""
    graph = graph_of(nx.gnp_random_graph(n, density, seed=seed))
    role = np.random.default_rng(seed).choice(4, n)
    known, unseen = {int(user) for user in np.nonzero(role == 1)[0]}, {int(user) for user in np.nonzero(role == 2)[0]}
    found = pair_leaks(graph, 0.7, 0.7 * ratio, sorted(known), sorted(unseen))
    for user in range(n):
        if user in known | unseen:
            assert math.isnan(found[user])
        else:
            exact = seen_by(graph, 0.7, 0.7 * ratio, known, unseen, user)
            assert found[user] == pytest.approx(exact, rel=1e-8)
            assert found[user] >= exact * (1.0 - 1e-10)


def exact_leaks(graph: Graph, ratio: int) -> list[Fraction]:
    """The same in fractions, by elimination."""
    n = graph.n
    rows = [[Fraction(0)] * (2 * n) for _ in range(n)]
    for user in range(n):
        rows[user][user] = Fraction(1 + ratio * graph.degree(user))
        rows[user][n + user] = Fraction(1)
        for near in graph.neighbours[user]:
            rows[user][near] = Fraction(-ratio)
    for at in range(n):
        rows[at] = [entry / rows[at][at] for entry in rows[at]]
        for other in range(n):
            if other != at and rows[other][at]:
                rows[other] = [a - rows[other][at] * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [rows[user][n + user] for user in range(n)]


@pytest.mark.parametrize("power", [0, 4, 20, 40, 60])
def test_leaks_are_never_below_the_exact_ones_and_next_to_them(power: int) -> None:
    """However large pair noise is: the condition of the plain matrix would leave no digit at 2^60."""
    graph = graph_of(nx.barbell_graph(5, 3))
    exact = exact_leaks(graph, 2**power)
    found = pair_leaks(graph, 1.0, 2.0 ** (power / 2))
    for one, other in zip(found.tolist(), exact, strict=True):
        assert Fraction(one) >= other
        assert one <= float(other) * (1.0 + 1e-10)


def uniform_view(graph: Graph, inputs: tuple[int, ...], modulus: int, known: set[int]) -> Counter[tuple[int, ...]]:
    """How often each view comes up over all values of the masks that the observer does not know; known ones are 0."""
    edges = [edge for edge in graph.edges() if not known & set(edge)]
    honest = [user for user in range(graph.n) if user not in known]
    seen: Counter[tuple[int, ...]] = Counter()
    for masks in itertools.product(range(modulus), repeat=len(edges)):
        values = list(inputs)
        for (low, high), mask in zip(edges, masks, strict=True):
            values[low] += mask
            values[high] -= mask
        seen[tuple(values[user] % modulus for user in honest)] += 1
    return seen


@pytest.mark.parametrize("known", [set(), {1}, {2}, {0, 3}])
def test_uniform_masks_tell_the_sum_of_each_component_and_nothing_else(known: set[int]) -> None:
    """[BIK17] and, for graphs, [BBGLR20]: all masks modulo 5, which is more than any sum, for all inputs of 0 or 1."""
    graph = graph_of_edges(4, [(0, 1), (1, 2), (2, 3), (0, 2)])
    honest = nx.Graph([edge for edge in graph.edges() if not known & set(edge)])
    honest.add_nodes_from(set(range(4)) - known)
    parts = [sorted(part) for part in nx.connected_components(honest)]
    views: dict[tuple[int, ...], Any] = {}
    for inputs in itertools.product(range(2), repeat=4):
        sums = tuple(sum(inputs[user] for user in part) for part in parts)
        view = uniform_view(graph, inputs, 5, known)
        assert views.setdefault(sums, view) == view
    assert len({frozenset(view.items()) for view in views.values()}) == len(views)
    leaks = mask_leaks(graph, 2.0, known)
    for part in parts:
        assert leaks[part] == pytest.approx([1 / (4 * len(part))] * len(part), rel=1e-12)
    assert all(math.isnan(leaks[user]) for user in known)


def test_pair_noise_without_end_hides_as_masks_do() -> None:
    graph = regular(60, 4, 1)
    out = list(range(0, 60, 3))
    assert pair_leaks(graph, 0.3, 1e9, out) == pytest.approx(mask_leaks(graph, 0.3, out), rel=1e-9, nan_ok=True)


def test_no_own_noise_hides_nothing_of_the_sum() -> None:
    assert np.all(np.isinf(mask_leaks(RING, 0.0)))


@pytest.mark.parametrize(
    ("n", "degree", "colluders", "error"),
    [
        (100, 10, 0, 1.05),
        (100, 10, 10, 1.11),
        (100, 10, 30, 1.25),
        (100, 10, 50, 1.48),
        (1000, 10, 100, 1.11),
        (16, 4, 2, 1.12),
        (16, 4, 5, 1.26),
    ],
)
def test_errors_beside_those_of_a_trusted_curator(n: int, degree: int, colluders: int, error: float) -> None:
    """The table of guide/accounting.md, section 7: 10 % slack in the own variance, epsilon 1 at 1e-5."""
    mu = gaussian.mu_of_curve(1.0, DELTA)
    out = np.random.default_rng(2).permutation(n)[:colluders].tolist()
    noise = pair_noise(regular(n, degree, 3), mu, 0.1, out)
    assert noise.hidden == n - colluders
    assert math.sqrt(n) * noise.sigma * mu == pytest.approx(error, rel=0.03)
    assert noise.leak <= mu * mu
    less = pair_leaks(regular(n, degree, 3), noise.sigma, noise.pair_sigma * 0.999, out)
    assert np.nanmax(less) > mu * mu  # it is the least


@given(st.floats(1e-3, 50.0), st.integers(1, 10_000))
def test_own_noise_is_enough_and_no_more(mu: float, hidden: int) -> None:
    sigma = Fraction(own_sigma(mu, hidden))
    needed = 1 / (hidden * Fraction(mu) ** 2)
    assert needed <= sigma**2 <= needed * (1 + Fraction(1, 10**12))


def test_a_user_whose_neighbours_all_collude_needs_the_local_noise() -> None:
    noise = pair_noise(STAR, 0.5, 0.1, [0])
    assert (noise.hidden, noise.pair_sigma) == (1, 0.0)
    assert noise.sigma == pytest.approx(2.0 * math.sqrt(1.1))


def test_nobody_left_and_no_slack_at_all_are_refused() -> None:
    with pytest.raises(Refused):
        pair_noise(RING, 1.0, 0.1, range(8))
    with pytest.raises(Refused):
        pair_noise(RING, 1.0, 1e-19)


@pytest.mark.parametrize(("kind", "n", "degree"), [("regular", 40, 6), ("ring", 12, None), ("star", 9, None)])
@pytest.mark.parametrize("pair_sigma", [0.1, 3.0, 40.0])
def test_one_inverse_tells_what_each_single_user_learns(
    kind: str, n: int, degree: int | None, pair_sigma: float
) -> None:
    graph = make_graph(GraphPart(kind=kind, degree=degree), n, 1)
    found = leaks_to_each(graph, 0.5, pair_sigma)
    for user in range(n):
        expected = pair_leaks(graph, 0.5, pair_sigma, [user])
        others = np.arange(n) != user
        assert np.isnan(found[user, user])
        assert np.all(found[others, user] >= expected[others] * (1 - 1e-12))
        np.testing.assert_allclose(found[others, user], expected[others], rtol=1e-3)


def test_too_much_pair_noise_and_dense_graphs_are_refused() -> None:
    for graph, pair_sigma in ((make_graph(GraphPart(kind="ring"), 6, 0), 1e5), (complete_graph(1500), 2.0)):
        with pytest.raises(Refused, match="pair noise"):
            leaks_to_each(graph, 1.0, pair_sigma)
    alone = graph_of_edges(3, [(0, 1)])
    assert leaks_to_each(alone, 1.0, 2.0)[2, 0] == pytest.approx(1.0), "who has no neighbours has its own noise"
