from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.accounting.hidden_path_gaps import Stretch
from p2pdp.accounting.hidden_path_graph_laws import GraphLaws

HOUSE = ((1, 2, 5), (0, 2, 3), (0, 1, 3, 4), (1, 2, 4), (2, 3, 5), (0, 4))
SQUARE = ((1, 3), (0, 2), (1, 3), (0, 2))
STAR = ((1, 2, 3), (0,), (0,), (0,))
CUT = 1e-13


def enumerated(graph: Any, observer: int, stretch: Stretch, spreader: int) -> Any:
    """P(c >= k) for each user, from every path with its probability."""
    n = len(graph)
    starts = [stretch.first] if stretch.first is not None else [one for one in graph[spreader] if one != observer]
    weights: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    for start in starts:
        weights[start, tuple(int(user == start) for user in range(n))] += 1.0
    for _ in range(stretch.length - 1):
        following: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
        for (at, counts), weight in weights.items():
            for to in graph[at]:
                if to != observer:
                    more = tuple(count + (user == to) for user, count in enumerate(counts))
                    following[to, more] += weight / len(graph[at])
        weights = following
    law = np.zeros((n, stretch.length + 1))
    for (at, counts), weight in weights.items():
        if stretch.last in (None, at):
            law[range(n), counts] += weight
    law /= law[0].sum()
    return np.cumsum(law[:, ::-1], axis=1)[:, ::-1]


def assert_same(laws: GraphLaws, gap: tuple[Stretch, ...], tails: Any) -> None:
    found = laws.tails(gap)
    margin = laws.margin(gap)
    assert margin < 1e-11
    width = found.shape[1]
    np.testing.assert_allclose(found, tails[laws.others][:, :width], atol=margin)
    assert tails[laws.others][:, width:].max(initial=0.0) <= margin


@given(st.data())
def test_tails_are_those_of_all_paths(data: st.DataObject) -> None:
    graph, observer, spreader = data.draw(st.sampled_from([(HOUSE, 3, 0), (HOUSE, 0, 2), (SQUARE, 2, 1)]))
    others = st.sampled_from([user for user in range(len(graph)) if user != observer])
    stretch = Stretch(data.draw(st.integers(1, 8)), *(data.draw(st.none() | others) for _ in range(2)))
    try:
        tails = enumerated(graph, observer, stretch, spreader)
    except (ZeroDivisionError, FloatingPointError, RuntimeWarning):  # there is no such path
        return
    assert_same(GraphLaws(graph, observer, spreader, CUT), (stretch,), tails)


def test_stretches_that_are_seen_as_one_sum_add_up() -> None:
    stretches = (Stretch(3, 1, None), Stretch(4, 2, None), Stretch(1, 4, None))
    each = [-np.diff(enumerated(HOUSE, 3, one, 0), axis=1, append=0.0) for one in stretches]
    law = [np.convolve(np.convolve(one, two), three) for one, two, three in zip(*each, strict=True)]
    tails = np.cumsum(np.array(law)[:, ::-1], axis=1)[:, ::-1]
    assert_same(GraphLaws(HOUSE, 3, 0, CUT), stretches, tails)


@pytest.mark.parametrize("length", [31, 32, 33, 200, 1000])
def test_long_stretches_agree_with_the_matrix_recursion(length: int) -> None:
    """Row c of `weights` holds the paths with c visits to user 1 so far, by where they are."""
    observer, user = 3, 1
    weights = np.zeros((length + 2, 6))
    weights[0, 4] = 1.0
    for _ in range(length - 1):
        moved = np.zeros_like(weights)
        for at in range(6):
            for to in set(HOUSE[at]) - {observer}:
                moved[:, to] += weights[:, at] / len(HOUSE[at])
        moved[1:, user] = moved[:-1, user].copy()
        moved[0, user] = 0.0
        weights = moved / moved.sum()
    law = weights[:, 2] / weights[:, 2].sum()
    laws = GraphLaws(HOUSE, observer, 0, CUT)
    gap = (Stretch(length, 4, 2),)
    tails = laws.tails(gap)[laws.others.index(user)]
    np.testing.assert_allclose(tails, np.cumsum(law[::-1])[::-1][: len(tails)], atol=laws.margin(gap))


def test_alone_between_visits_of_the_centre_a_leaf_is_known() -> None:
    laws = GraphLaws(STAR, 0, 0, CUT)
    assert laws.tails((Stretch(1, 2, 2),)).tolist() == [[1, 0], [1, 1], [1, 0]]
    np.testing.assert_allclose(laws.tails((Stretch(1, None, None),)), [[1, 1 / 3]] * 3)


def test_what_cannot_have_happened_is_not_told_from_rounding() -> None:
    """A stretch that no path fits, on a graph with two colours: everything is left open."""
    laws = GraphLaws(SQUARE, 2, 0, CUT)
    assert laws.margin((Stretch(2, 1, 3),)) == 1.0
