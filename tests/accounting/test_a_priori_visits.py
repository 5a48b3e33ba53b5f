"""How often a walk on a graph comes to each user, against the law counted step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom

from p2pdp.accounting.a_priori_visits import MARGIN, graph_visits
from p2pdp.core.arrays import Floats
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph

DELTA = 1e-6
STEPS = 25


def counted(neighbours: Sequence[Sequence[int]], user: int, *, spread: bool) -> Floats:
    """The chances of 0, 1, ... visits, by the law of place and count after each step."""
    starts = neighbours[0] if spread else [0]
    law = np.zeros((len(neighbours), STEPS + 1))
    for start in starts:
        law[start, int(start == user)] += 1.0 / len(starts)
    for _ in range(STEPS - 1):
        after = np.zeros_like(law)
        for place, row in enumerate(neighbours):
            for to in row:
                moved = np.append(0.0, law[place, :-1]) if to == user else law[place]
                after[to] += moved / len(row)
        law = after
    found: Floats = law.sum(axis=0)
    return found


@pytest.mark.parametrize(
    "part",
    [
        GraphPart("path"),
        GraphPart("star"),
        GraphPart("grid", rows=2),
        GraphPart("regular", degree=3),
        GraphPart("complete"),
    ],
)
@pytest.mark.parametrize("spread", [False, True])
def test_the_law_is_the_one_counted_step_by_step(part: GraphPart, spread: bool) -> None:
    neighbours = make_graph(part, 6, 3).neighbours
    laws = graph_visits(neighbours, STEPS, 1, DELTA, spread=spread)
    for user, law in enumerate(laws):
        true = counted(neighbours, user, spread=spread)
        tails = np.cumsum(true[::-1])[::-1]
        ours = np.cumsum(law.masses[::-1])[::-1]
        assert np.all(ours >= tails[: len(ours)] - 1e-15)  # never fewer visits than there are
        assert np.all(ours <= tails[: len(ours)] + 3 * MARGIN)
        assert tails[len(ours) :].sum() == pytest.approx(0.0, abs=law.lost)


def test_several_tokens_are_independent() -> None:
    neighbours = make_graph(GraphPart("path"), 4, 0).neighbours
    one = counted(neighbours, 2, spread=True)
    both = np.convolve(one, one)
    law = graph_visits(neighbours, STEPS, 2, DELTA, spread=True)[2]
    assert law.counts.tolist() == list(range(len(law.counts)))
    assert law.masses == pytest.approx(both[: len(law.masses)], abs=1e-10)


def test_two_users_take_turns_and_one_stays_alone() -> None:
    laws = graph_visits([[1], [0]], 9, 1, DELTA, spread=False)
    for law, visits in zip(laws, (5, 4), strict=True):
        assert law.mean == pytest.approx(visits, abs=1e-8)
        assert law.masses[visits] == pytest.approx(1.0, abs=1e-9)
    alone = graph_visits([[]], 9, 2, DELTA, spread=True)
    assert (alone[0].counts.tolist(), alone[0].masses.tolist()) == ([18.0], [1.0])


def test_a_long_walk_is_near_its_stationary_law() -> None:
    neighbours = make_graph(GraphPart("complete"), 40, 0).neighbours
    law = graph_visits(neighbours, 4_000, 1, DELTA, spread=False)[7]
    assert law.mean == pytest.approx(100.0, rel=1e-3)
    # A walk that never stays where it is spreads its visits more evenly than independent choices.
    assert law.counts[-1] <= binom.isf(1e-12, 4_000, 1 / 40)
