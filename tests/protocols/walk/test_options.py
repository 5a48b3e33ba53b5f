from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.protocols.walk.limits import complete_limit
from p2pdp.protocols.walk.options import OPTIONS, VISITS_MAX, WalkPart, contributions, course_of
from p2pdp.protocols.walk.sums import PROTOCOL
from p2pdp.topology.graphs import make_graph
from tests.support.walk_world import sum_spec

RING, COMPLETE, PATH = sum_spec(n=5, laps=3), sum_spec(n=5, hops=7, tokens=2), sum_spec(n=5, hops=7, kind="path")


def test_order_steps_and_tokens_are_those_of_the_contract() -> None:
    found = [course_of(spec, 5, {}) for spec in (RING, COMPLETE, PATH)]
    assert [(course.order, course.steps, course.tokens) for course in found] == [
        ("ring", 15, 1),
        ("complete", 7, 2),
        ("graph", 7, 1),
    ]
    assert [contributions(spec) for spec in (RING, COMPLETE, PATH)] == [15, 14, 7]


def test_a_ring_follows_the_real_number_of_users_and_has_room_for_one_token_each() -> None:
    assert course_of(RING, 4, {}).steps == 12
    with pytest.raises(UsageError, match=r"^\[walk\] tokens"):
        course_of(sum_spec(n=5, laps=3, tokens=4), 3, {})


def test_the_limit_of_visits_is_computed_signed_or_none() -> None:
    assert course_of(RING, 5, {}).visits_max is None
    assert course_of(PATH, 5, {}).visits_max is None
    assert course_of(PATH, 5, {VISITS_MAX: 3}).visits_max == 3
    assert course_of(COMPLETE, 5, {VISITS_MAX: 3}).visits_max == complete_limit(5, 7, 2)
    signed = PROTOCOL.graph_facts(PATH, make_graph(PATH.graph, 5, 1))
    assert 1 <= int(signed[VISITS_MAX]) <= 7
    for spec in (RING, COMPLETE):
        assert PROTOCOL.graph_facts(spec, make_graph(spec.graph, 5, 1)) == {}


def test_what_a_node_limits_and_what_takes_time() -> None:
    assert PROTOCOL.sizes(COMPLETE) == {"hops": 7, "laps": None, "tokens": 2}
    assert [(work.key, work.actual) for work in PROTOCOL.work(RING, None)] == [("[walk] laps", 15)]
    assert [(work.key, work.actual) for work in PROTOCOL.work(COMPLETE, None)] == [
        ("[walk] hops", 14),
        ("[walk] tokens", 2),
    ]


def test_examples_differ_in_what_the_rules_look_at() -> None:
    assert {example.order for example in OPTIONS.examples} == {"ring", "random"}
    assert all(isinstance(example, WalkPart) for example in OPTIONS.examples)
