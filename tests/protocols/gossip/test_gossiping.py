from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.draws import Mechanism
from p2pdp.core.spec import GraphPart
from p2pdp.core.step import NOTHING, Message
from p2pdp.protocols.gossip.plan import EXCHANGE, SETTLED, SKIPPED
from p2pdp.topology.graphs import complete_graph, make_graph
from tests.support.gossip_world import PATIENCE_S, GossipWorld, expected, plan_of, shared

RANDOM = np.random.default_rng(5)
GRAPHS = {
    "ring": make_graph(GraphPart(kind="ring"), 7, 0),
    "path": make_graph(GraphPart(kind="path"), 3, 0),
    "star": make_graph(GraphPart(kind="star"), 5, 0),
    "hypercube": make_graph(GraphPart(kind="hypercube"), 8, 0),
    "two": make_graph(GraphPart(kind="ring"), 2, 0),
    "complete": complete_graph(4),
    "alone": complete_graph(1),
}


PAIRS: dict[str, Any] = {"pair_noise": Mechanism("gaussian", 2.0**22), "grid_exponent": -20}


def world(name: str, rounds: int, seed: int = 0, **more: Any) -> GossipWorld:
    graph = GRAPHS[name]
    values = np.random.default_rng(seed).normal(size=graph.n).tolist()
    return GossipWorld(plan_of(graph, rounds, **more), graph, values, seed=seed)


def results(made: GossipWorld) -> Any:
    return np.array([made.final[user] for user in sorted(made.final)])


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("accelerated", [False, True])
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 9))
@settings(max_examples=15)
def test_rounds_are_matrix_products_in_any_order(name: str, accelerated: bool, seed: int, rounds: int) -> None:
    """[CEBM22, Algorithm 1], with lazy and Metropolis weights."""
    for weights in ("metropolis", "lazy", "maxdegree"):
        made = world(name, rounds, seed, accelerated=accelerated, weights=weights)
        made.start()
        made.run()
        np.testing.assert_allclose(results(made), expected(made.plan, made.graph, made.values), rtol=0, atol=1e-12)
        assert (made.skips, made.faults) == (0, [])


def test_some_may_begin_before_others_have_started() -> None:
    made = world("ring", 4)
    made.start(0, 1, 2)
    made.deliver_all()
    made.start(3, 4, 5, 6)
    made.run()
    np.testing.assert_allclose(results(made), expected(made.plan, made.graph, made.values), atol=1e-12)
    assert made.machines[0].start(0.0, made.draws[0]) == NOTHING, "a second GO does nothing"


def test_vectors_are_averaged_number_by_number() -> None:
    graph = GRAPHS["ring"]
    values = np.random.default_rng(1).normal(size=(7, 3))
    made = GossipWorld(plan_of(graph, 5, accelerated=True, shape=(3,)), graph, values)
    made.start()
    made.run()
    np.testing.assert_allclose(results(made), expected(made.plan, graph, values), atol=1e-12)


def test_noise_is_drawn_once_and_in_data_units() -> None:
    graph = GRAPHS["ring"]
    plan = plan_of(graph, 3, noise=Mechanism("gaussian", 2.0**20), grid_exponent=-20)
    made = GossipWorld(plan, graph, [0.0] * 7)
    made.start()
    made.run()
    drawn = [draws.drawn for draws in made.draws]
    assert all(len(one) == 1 for one in drawn)
    np.testing.assert_allclose(results(made), expected(plan, graph, [one[0] * 2.0**-20 for one in drawn]), atol=1e-12)


def test_message_noise_is_fresh_for_each_edge_and_round_and_leaves_the_state_clean() -> None:
    graph = GRAPHS["two"]
    plan = plan_of(graph, 1, message_noise=Mechanism("gaussian", 2.0**20), grid_exponent=-20)
    made = GossipWorld(plan, graph, [0.0, 1.0])
    made.start()
    made.run()
    noise = [draws.drawn[0] * 2.0**-20 for draws in made.draws]
    assert made.final[0] == pytest.approx((1.0 + noise[1]) / 2, abs=1e-12)
    assert made.final[1] == pytest.approx(1.0 + (0.0 + noise[0] - 1.0) / 2, abs=1e-12)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("late", [0, 3, 6])
@given(seed=st.integers(0, 10**6), after=st.integers(0, 40), pauses=st.integers(1, 4))
@settings(max_examples=15)
def test_the_sum_is_kept_whoever_is_late(accelerated: bool, late: int, seed: int, after: int, pauses: int) -> None:
    """Deciders go on without the late one, which comes back; the mean of the final states is that of the values."""
    made = world("ring", 8, seed, accelerated=accelerated, **(PAIRS if seed % 2 else {}))
    made.start()
    for _ in range(after):
        made.deliver()
    made.asleep.add(late)
    for _ in range(pauses):
        made.deliver_all()
        made.pass_time(PATIENCE_S)
    made.asleep.clear()
    made.run()
    assert made.faults == []
    scale = 10.0 ** (3 * accelerated + 2 * (seed % 2))  # accelerated states may swing far before they settle
    assert np.mean(results(made)) == pytest.approx(np.mean(made.values), abs=1e-11 * scale)


def test_a_late_user_is_left_out_by_its_deciders() -> None:
    made = world("ring", 6)
    made.start()
    made.asleep.add(6)  # both of its neighbours, 0 and 5, decide
    made.deliver_all()
    for _ in range(4):
        made.pass_time(PATIENCE_S / 2)
        made.deliver_all()
    assert made.skips > 2, "after one patience it is not waited for in each round again"
    made.asleep.clear()
    made.run()
    assert np.mean(results(made)) == pytest.approx(np.mean(made.values), abs=1e-12)


def test_a_silent_decider_is_waited_for_until_it_is_out() -> None:
    made = world("ring", 6)
    made.start()
    made.asleep.add(0)
    for _ in range(12):
        made.deliver_all()
        made.pass_time(PATIENCE_S / 2)
    assert not made.final
    made.exclude(0)
    made.run()
    assert sorted(made.final) == [1, 2, 3, 4, 5, 6]
    assert made.faults == []


@given(seed=st.integers(0, 10**6), gone=st.integers(0, 6), after=st.integers(0, 120))
@settings(max_examples=40)
def test_the_others_end_whoever_is_out_at_any_moment(seed: int, gone: int, after: int) -> None:
    made = world("ring", 6, seed, accelerated=bool(seed % 2), **(PAIRS if seed % 3 else {}))
    made.start()
    for _ in range(after):
        made.deliver()
    if gone not in made.final:
        made.exclude(gone)
    made.run()
    assert set(made.final) >= set(range(7)) - {gone}
    assert made.faults == []
    assert np.all(np.isfinite(results(made)))


def test_what_does_not_belong_is_a_fault() -> None:
    made = world("ring", 3)
    made.start()
    machine, draws = made.machines[3], made.draws[3]
    strange = [
        (5, Message(EXCHANGE, (1, 2), 0.0)),  # no neighbour
        (2, Message(EXCHANGE, (2, 2), 0.0)),  # its first is missing
        (2, Message(SKIPPED, (1,))),  # of a round that it did not send
        (4, Message(SKIPPED, (1,))),  # we decide about that edge
        (4, Message(SETTLED)),
        (2, Message("token", (0, 1), 0)),
    ]
    for sender, message in strange:
        assert [fault.peer for fault in machine.receive(sender, message, 0.0, draws).faults] == [sender]
    assert not machine.receive(2, Message(EXCHANGE, (1, 2), 0.5), 0.0, draws).faults
    assert machine.receive(2, Message(EXCHANGE, (1, 2), 0.5), 0.0, draws).faults, "twice"
    assert machine.excluded(5, 0.0, draws) == NOTHING


def test_only_what_the_spec_publishes_reaches_the_curator() -> None:
    for publish, told in (("none", set()), ("one", {0}), ("all", set(range(7)))):
        made = world("ring", 3, publish=publish)
        made.start()
        made.run()
        assert {user for user, value in made.finished.items() if value is not None} == told
        assert len(made.finished) == 7
        assert all(made.finished[user] == made.final[user] for user in told)


def test_repr_holds_no_value() -> None:
    made = world("two", 2)
    made.start()
    assert repr(made.machines[0]) == "Gossip(user=0)"


@pytest.mark.parametrize("name", ["ring", "star", "hypercube", "two", "alone"])
@given(seed=st.integers(0, 10**6), accelerated=st.booleans(), rounds=st.integers(1, 9))
@settings(max_examples=10)
def test_noise_of_pairs_is_in_what_is_sent_and_cancels_in_the_mean(
    name: str, seed: int, accelerated: bool, rounds: int
) -> None:
    made = world(name, rounds, seed, accelerated=accelerated, **PAIRS)
    made.start()
    sent = {link[0]: queue[0].value for link, queue in made.links.items()}
    masked = np.array(made.values) + shared(made.plan, made.graph, seed)
    assert all(sent[user] == pytest.approx(masked[user], abs=1e-9) for user in sent)
    assert not sent or max(abs(masked[user] - made.values[user]) for user in sent) > 1e-3
    made.run()
    np.testing.assert_allclose(results(made), expected(made.plan, made.graph, masked), rtol=0, atol=1e-9)
    assert np.mean(results(made)) == pytest.approx(np.mean(made.values), abs=1e-9)


@pytest.mark.parametrize("accelerated", [False, True])
@given(seed=st.integers(0, 10**6), gone=st.integers(0, 6), after=st.integers(0, 30), pauses=st.integers(0, 3))
@settings(max_examples=25)
def test_of_somebody_who_never_counted_nothing_is_left_over(
    accelerated: bool, seed: int, gone: int, after: int, pauses: int
) -> None:
    """It may have sent nothing at all, and others may have gone on without it."""
    made = world("ring", 8, seed, accelerated=accelerated, **PAIRS)
    made.asleep.add(gone)
    made.start(*(user for user in range(7) if user != gone))
    for _ in range(after):
        made.deliver()
    for _ in range(pauses):
        made.deliver_all()
        made.pass_time(PATIENCE_S)
    ended = set(made.final)
    made.exclude(gone)
    made.run()
    kept = [value for user, value in enumerate(made.values) if user != gone]
    if not ended & set(made.graph.neighbours[gone]):
        assert np.mean(results(made)) == pytest.approx(np.mean(kept), abs=1e-6)
