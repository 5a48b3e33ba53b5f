from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.spec import GraphPart
from p2pdp.core.step import NOTHING, Message
from p2pdp.protocols.shuffle.plan import MARK, RELAY
from p2pdp.topology.graphs import complete_graph, make_graph
from tests.support.shuffle_world import NAME_BYTES, PATIENCE_S, ShuffleWorld, plan_of

GRAPHS = {
    "ring": make_graph(GraphPart(kind="ring"), 7, 0),
    "star": make_graph(GraphPart(kind="star"), 5, 0),
    "two": make_graph(GraphPart(kind="ring"), 2, 0),
    "complete": complete_graph(5),
    "alone": complete_graph(1),
    "regular": make_graph(GraphPart(kind="regular", degree=4), 12, 3),
}
DUMMY = 255


def world(name: str, rounds: int, seed: int = 0, **more: Any) -> ShuffleWorld:
    graph = GRAPHS[name]
    return ShuffleWorld(plan_of(graph, rounds, **more), graph, seed=seed)


def owners(made: ShuffleWorld) -> list[int]:
    return sorted(owner for _, owner in made.reports)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("more", [{}, {"stay": 0.5}, {"slots": 2}])
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 9))
@settings(max_examples=15)
def test_every_report_arrives_once_in_any_order(name: str, more: dict[str, Any], seed: int, rounds: int) -> None:
    """[LTT22, Algorithm 1]."""
    made = world(name, rounds, seed, **more)
    made.start()
    made.run()
    assert owners(made) == list(range(made.graph.n))
    assert len(set(made.names)) == made.graph.n
    assert made.finished == set(range(made.graph.n))
    assert made.faults == []
    assert all(inputs.made == 1 for inputs in made.inputs), "each value is randomized once"


@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 6))
@settings(max_examples=30)
def test_single_hands_in_one_report_each_and_dummies_where_there_is_none(seed: int, rounds: int) -> None:
    """[LTT22, Algorithm 2]."""
    made = world("regular", rounds, seed, single=True)
    made.start()
    made.run()
    assert sorted(user for user, _ in made.reports) == list(range(12))
    real = [owner for owner in owners(made) if owner != DUMMY]
    assert len(set(real)) == len(real)


def test_reports_move_as_the_walk_says() -> None:
    """Where a report is after t rounds has the law of row u of P^t; lazy ones stay with probability 1/2."""
    runs, graph = 1500, GRAPHS["star"]
    for stay, rounds in ((0.0, 1), (0.0, 2), (0.5, 3)):
        walk = np.zeros((5, 5))
        for user in range(5):
            for peer in graph.neighbours[user]:
                walk[user, peer] = (1 - stay) / graph.degree(user)
            walk[user, user] = stay
        counts = np.zeros((5, 5))
        for seed in range(runs):
            made = world("star", rounds, seed, stay=stay)
            made.start()
            made.run()
            for holder, owner in made.reports:
                counts[owner, holder] += 1
        law = np.linalg.matrix_power(walk, rounds)
        assert np.all(np.abs(counts / runs - law) < 5.5 * np.sqrt(law * (1 - law) / runs) + 1e-12)


def test_what_a_holder_passes_on_is_in_an_order_that_says_nothing() -> None:
    """The star's centre has all others' reports: their order at the curator is uniform."""
    firsts = Counter()
    for seed in range(2000):
        made = world("star", 1, seed)
        made.start()
        made.run()
        centre = [owner for holder, owner in made.reports if holder == 0]
        firsts[centre[0]] += 1
    assert all(abs(firsts[owner] - 500) < 5.5 * np.sqrt(2000 * 0.25 * 0.75) for owner in (1, 2, 3, 4))


@given(seed=st.integers(0, 10**6), slots=st.integers(1, 3))
@settings(max_examples=20)
def test_with_cover_each_neighbour_gets_as_many_frames_in_each_round(seed: int, slots: int) -> None:
    made = world("regular", 5, seed, slots=slots)
    made.start()
    made.run()
    links = [(user, peer, number) for user in range(12) for peer in GRAPHS["regular"].neighbours[user]
             for number in range(1, 6)]  # fmt: skip
    assert made.frames == dict.fromkeys(links, slots)
    assert owners(made) == list(range(12)), "what has no room stays and is not lost"


@pytest.mark.parametrize("late", [0, 3])
@given(seed=st.integers(0, 10**6), after=st.integers(0, 60), pauses=st.integers(1, 4))
@settings(max_examples=20)
def test_who_is_late_is_not_waited_for_and_nothing_is_lost(late: int, seed: int, after: int, pauses: int) -> None:
    made = world("regular", 6, seed)
    made.start()
    for _ in range(after):
        made.deliver()
    made.asleep.add(late)
    for _ in range(pauses):
        made.deliver_all()
        made.pass_time(PATIENCE_S)
    made.asleep.clear()
    made.run()
    assert owners(made) == list(range(12))
    assert made.faults == []


def test_rounds_go_on_without_the_late_one_but_nobody_hands_in_before_its_last_mark() -> None:
    made = world("ring", 6)
    made.start()
    made.asleep.add(3)
    for _ in range(6):
        made.deliver_all()
        made.pass_time(PATIENCE_S)
    assert {made.machines[user]._round for user in (2, 4)} == {7}
    assert not made.finished & {2, 4}
    made.exclude(3)
    made.run()
    assert made.finished == {0, 1, 2, 4, 5, 6}
    assert 3 not in {user for user, _ in made.reports}


def test_what_was_passed_to_somebody_who_is_gone_stays_here() -> None:
    made = world("two", 3)
    made.start()
    machine, draws = made.machines[0], made.draws[0]
    (relay, _) = made.links[0, 1]
    before, hop, _ = relay.fields
    assert machine.receive(BOOTSTRAP, Message(messages.LOST, (hop, 1)), 0.0, draws).faults, "it is not out"
    assert machine.excluded(1, 0.0, draws).faults == ()
    lost = Message(messages.LOST, (hop, 1))
    assert machine.receive(BOOTSTRAP, Message(messages.LOST, (hop, 2)), 0.0, draws).faults, "another round"
    again = machine.receive(BOOTSTRAP, lost, 0.0, draws)
    assert [(send.to, send.message.type, send.message.value) for send in again.sends] == [
        (CURATOR, messages.REPORT, relay.value),
        (CURATOR, messages.HEEDED, None),
    ], "all rounds were over when nobody else was left"
    assert again.sends[0].message.fields == (before, 4)
    assert machine.receive(BOOTSTRAP, lost, 0.0, draws).faults, "twice"


def test_a_report_that_comes_back_goes_on_with_the_next_round() -> None:
    made = world("star", 4)
    made.start()
    machine, draws = made.machines[0], made.draws[0]
    queues = [(to, queue[0]) for (sender, to), queue in made.links.items() if sender == 0]
    ((to, relay),) = [(to, first) for to, first in queues if first.type == RELAY]
    assert machine.excluded(to, 0.0, draws).faults == ()
    told = machine.receive(BOOTSTRAP, Message(messages.LOST, relay.fields[1:]), 0.0, draws)
    assert [(send.to, send.message) for send in told.sends] == [(CURATOR, Message(messages.HEEDED))]
    assert (relay.fields[0], relay.value) in machine._held


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_a_report_goes_by_another_number_at_every_hop_and_none_is_the_name_inside(seed: int) -> None:
    made = world("regular", 6, seed)
    made.start()
    made.run()
    numbers = [*made.hops, *made.names]
    assert len(made.hops) == 6 * 12
    assert len(set(numbers)) == len(numbers)


def test_what_does_not_belong_is_a_fault() -> None:
    made = world("ring", 3)
    made.start()
    machine, draws = made.machines[3], made.draws[3]
    sealed = bytes(NAME_BYTES + 1)
    strange = [
        (5, Message(MARK, (1,))),  # no neighbour
        (2, Message(MARK, (2,))),  # its first is missing
        (2, Message(RELAY, (8, 9, 2), sealed)),
        (2, Message("token", (0, 1), 0)),
        (BOOTSTRAP, Message(messages.LOST, (9, 1))),  # never passed on
    ]
    for sender, message in strange:
        assert [fault.peer for fault in machine.receive(sender, message, 0.0, draws).faults] == [sender]
    assert not machine.receive(2, Message(MARK, (1,)), 0.0, draws).faults
    assert machine.receive(2, Message(MARK, (1,)), 0.0, draws).faults, "twice"
    assert not machine.receive(2, Message(RELAY, (8, 9, 2), sealed), 0.0, draws).faults
    assert machine.receive(2, Message(RELAY, (8, 9, 2), sealed), 0.0, draws).faults, "a hop is passed on once"
    assert not machine.receive(2, Message(MARK, (2,)), 0.0, draws).faults
    assert machine.receive(2, Message(RELAY, (8, 9, 3), sealed), 0.0, draws).faults, "in any round"
    assert machine.excluded(5, 0.0, draws) == NOTHING
    assert machine.start(0.0, draws) == NOTHING, "a second GO does nothing"


def test_repr_holds_no_report() -> None:
    made = world("two", 2)
    made.start()
    assert repr(made.machines[0]) == "Shuffle(user=0)"
