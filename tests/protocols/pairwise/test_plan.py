from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import UNIFORM
from p2pdp.core.step import Message
from p2pdp.protocols.pairwise.plan import (
    MASKED,
    MESSAGES,
    PAIR_KEY,
    SEEDS,
    SHARE,
    PairwisePlan,
    check_pairwise,
)
from tests.support.pairwise_world import COUNTS, pairwise, planned

PLAN: PairwisePlan = planned(pairwise(6, terms="survivors_min = 4", privacy="colluders_max = 2")).plan
VECTOR: PairwisePlan = planned(pairwise(6, data=COUNTS)).plan
BARE: PairwisePlan = planned(pairwise(6, terms='settle = "none"', noise='mechanism = "none"')).plan


def test_it_says_what_a_run_needs_and_sends() -> None:
    assert (PLAN.starts, PLAN.needed, PLAN.length, PLAN.unit) == ((), 4, 1, 1.0)
    assert "4 survivors" in PLAN.why_needed
    assert (PLAN.exchanges(10), BARE.exchanges(10)) == (20, 0)
    assert PLAN.mechanisms == (PLAN.noise, UNIFORM)
    assert BARE.mechanisms == (UNIFORM,)
    assert (BARE.needed, BARE.protection) == (6, ())


def test_a_category_moves_two_counts() -> None:
    assert VECTOR.counts
    assert VECTOR.sensitivity is not None
    assert math.ldexp(VECTOR.sensitivity, VECTOR.grid_exponent) == pytest.approx(math.sqrt(2.0), abs=1e-15)
    assert PLAN.sensitivity is None


@pytest.mark.parametrize(("degree", "threshold"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 3), (20, 3)])
def test_the_threshold_is_above_the_colluders_where_there_are_neighbours_enough(degree: int, threshold: int) -> None:
    assert PLAN.threshold(degree) == threshold


AROUND = {0: [1, 2, 3], 1: [0, 2, 3], 2: [0, 1, 3], 3: [0, 1, 2, 4], 4: [3], 5: []}


@pytest.mark.parametrize(
    ("live", "recoverable"),
    [
        ({0, 1, 2, 3, 4, 5}, True),
        ({0, 1, 3, 4, 5}, True),  # two of three parts of user 2's key are enough
        ({0, 3, 4, 5}, True),
        ({0, 1, 2, 4, 5}, True),
        ({0, 4, 5}, False),  # of user 1's one is left
        ({0, 1, 2, 3, 5}, True),
        ({0, 1, 2, 5}, False),  # nobody has a part of user 4's
        ({0, 1, 2, 3, 4}, False),  # nor of user 5's
    ],
)
def test_a_sum_is_recoverable_while_every_mask_can_be_taken_off(live: set[int], recoverable: bool) -> None:
    assert PLAN.recoverable(frozenset(range(6)), live, AROUND.__getitem__) is recoverable
    assert BARE.recoverable(frozenset(range(6)), live, AROUND.__getitem__)


def test_those_who_are_not_among_the_survivors_have_no_part_to_give() -> None:
    assert not PLAN.recoverable(frozenset({0, 1, 2}), {1, 2, 3}, lambda user: {0: [1, 3]}.get(user, []))


PART, KEY = bytes(33), bytes(32)


@pytest.mark.parametrize(
    ("kind", "fields", "value", "fault"),
    [
        (SHARE, (), PART, None),
        (SHARE, (), KEY, "bad_value"),
        (SHARE, (), 5, "bad_value"),
        (MASKED, ([1, 2],), 7, None),
        (MASKED, ([],), 7, None),
        (MASKED, ([2, 1],), 7, "malformed"),
        (MASKED, ([1, 1],), 7, "malformed"),
        (MASKED, ([1, 6],), 7, "malformed"),
        (MASKED, ([1, 2],), 7.0, "bad_value"),
        (MASKED, ([1, 2],), np.zeros(3, dtype=np.int64), "bad_value"),
        (PAIR_KEY, (5,), KEY, None),
        (PAIR_KEY, (6,), KEY, "malformed"),
        (PAIR_KEY, (5,), PART, "bad_value"),
        (SEEDS, ([3, 1, 2],), [KEY, PART, PART], None),
        (SEEDS, ([3],), [KEY], None),
        (SEEDS, ([],), [], "bad_value"),
        (SEEDS, ([3, 1, 2],), [KEY, PART], "bad_value"),
        (SEEDS, ([3, 1, 2],), [PART, PART, PART], "bad_value"),
        (SEEDS, ([3, 1, 2],), [KEY, PART, KEY], "bad_value"),
        (SEEDS, ([3, 2, 1],), [KEY, PART, PART], "malformed"),
        (SEEDS, ([3, 1],), KEY + PART, "bad_value"),
    ],
)
def test_what_nobody_could_send_is_a_fault(kind: str, fields: tuple[Any, ...], value: Any, fault: str | None) -> None:
    message = Message(kind, fields, value)
    assert MESSAGES.problem(message) is None
    assert check_pairwise(PLAN, message) == fault


def test_without_shares_there_are_none() -> None:
    for message in (Message(SHARE, (), PART), Message(PAIR_KEY, (1,), KEY), Message(SEEDS, ([3],), [KEY])):
        assert check_pairwise(BARE, message) is not None


def test_counts_are_arrays_of_whole_numbers() -> None:
    for value, fault in (
        (np.zeros(3, dtype=np.int64), None),
        (np.zeros(2, dtype=np.int64), "bad_value"),
        (np.zeros(3), "bad_value"),
        (3, "bad_value"),
    ):
        assert check_pairwise(VECTOR, Message(MASKED, ([1],), value)) == fault


@given(st.integers(2, 9), st.integers(0, 2**32), st.integers(1, 9))
def test_survivors_hide_each_other_if_no_component_of_theirs_is_too_small(n: int, seed: int, together: int) -> None:
    graph = nx.gnp_random_graph(n, 0.4, seed=seed)
    live = {user for user in range(n) if seed >> user & 1}
    smallest = min((len(part) for part in nx.connected_components(graph.subgraph(live))), default=together)
    plan = replace(PLAN, together=together)
    assert plan.hides(live, lambda user: list(graph[user])) == (smallest >= together)
