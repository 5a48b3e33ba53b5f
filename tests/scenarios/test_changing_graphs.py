"""Gossip on a graph that is drawn anew in each round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.step import Message
from p2pdp.protocols.gossip.plan import EXCHANGE, SETTLED
from p2pdp.topology.graphs import complete_graph
from tests.support.gossip_world import PATIENCE_S, GossipWorld, coins_of, expected, met_in, plan_of

N = 7


def world(rounds: int, coin: float, seed: int = 0, n: int = N, **more: Any) -> GossipWorld:
    graph = complete_graph(n)
    values = np.random.default_rng(seed).normal(size=n).tolist()
    return GossipWorld(
        plan_of(graph, rounds, coin=coin, gamma=more.pop("gamma", 1.0), **more), graph, values, seed=seed
    )


def results(made: GossipWorld) -> Any:
    return np.array([made.final[user] for user in sorted(made.final)])


@pytest.mark.parametrize("weights", ["metropolis", "lazy", "uniform"])
@pytest.mark.parametrize("gamma", [1.0, 1.2])
@given(seed=st.integers(0, 10**6), rounds=st.integers(1, 9), coin=st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]))
@settings(max_examples=15)
def test_rounds_are_products_of_their_own_matrices_in_any_order(
    weights: str, gamma: float, seed: int, rounds: int, coin: float
) -> None:
    """[CEBM22, Algorithm 1] on G_t; degrees are those of the round, and who meets nobody stays as it is."""
    made = world(rounds, coin, seed, weights=weights, gamma=gamma)
    made.start()
    made.run()
    wanted = expected(made.plan, made.graph, made.values, seed)
    np.testing.assert_allclose(results(made), wanted, rtol=0, atol=1e-12)
    assert (made.skips, made.faults) == (0, [])


@pytest.mark.parametrize("gamma", [1.0, 1.2])
@pytest.mark.parametrize("late", [0, 3, 6])
@given(seed=st.integers(0, 10**6), after=st.integers(0, 60), pauses=st.integers(1, 4), coin=st.floats(0.05, 1.0))
@settings(max_examples=25)
def test_the_sum_is_kept_whoever_is_late(
    gamma: float, late: int, seed: int, after: int, pauses: int, coin: float
) -> None:
    """What a decider left out may be taken back many rounds later, with what acceleration has made of it."""
    made = world(8, coin, seed, gamma=gamma)
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
    assert np.mean(results(made)) == pytest.approx(np.mean(made.values), abs=1e-9)


def test_what_was_left_out_long_ago_is_taken_back() -> None:
    """The one who is late is skipped in one round, uses the edge, and hears of it rounds later."""
    distances: list[int] = []
    for seed in range(200):
        made = world(8, 0.3, seed, gamma=1.2)
        late = made.machines[N - 1]
        undo = late._undo

        def watched(flow: Any, number: int, late: Any = late, undo: Any = undo) -> None:
            distances.append(late._round - number)
            undo(flow, number)

        late._undo = watched  # type: ignore[method-assign]
        made.start()
        made.asleep.add(N - 1)
        made.deliver_all()
        made.pass_time(0.0)
        made.pass_time(PATIENCE_S)
        made.asleep.clear()
        made.run()
        assert np.mean(results(made)) == pytest.approx(np.mean(made.values), abs=1e-9)
    assert max(distances) > 1, "the case that this test is for"


@given(seed=st.integers(0, 10**6), gone=st.integers(0, N - 1), after=st.integers(0, 150), coin=st.floats(0.05, 1.0))
@settings(max_examples=60)
def test_the_others_end_whoever_is_out_at_any_moment(seed: int, gone: int, after: int, coin: float) -> None:
    made = world(6, coin, seed, gamma=1.2 if seed % 2 else 1.0)
    made.start()
    for _ in range(after):
        made.deliver()
    if gone not in made.final:
        made.exclude(gone)
    made.run()
    assert set(made.final) >= set(range(N)) - {gone}
    assert made.faults == []
    assert np.all(np.isfinite(results(made)))


def test_a_message_goes_to_those_alone_whom_one_meets() -> None:
    made = world(5, 0.3, seed=3)
    sent: list[tuple[int, int, int]] = []
    act = made._act

    def watch(user: int, step: Any) -> None:
        sent.extend((user, send.to, send.message.fields[0]) for send in step.sends if send.message.type == "exchange")
        act(user, step)

    made._act = watch  # type: ignore[method-assign]
    made.start()
    made.run()
    coins = coins_of(3, N)
    for number in range(1, 6):
        graph = met_in(coins, number, 0.3)
        edges = {(user, peer) for user in range(N) for peer in graph.neighbours[user]}
        assert {(user, to) for user, to, at in sent if at == number} == edges


def test_what_comes_before_its_round_waits_and_what_repeats_an_older_one_is_a_fault() -> None:
    made = world(4, 1.0)
    made.start()
    machine, draws = made.machines[3], made.draws[3]
    assert not machine.receive(2, Message(EXCHANGE, (3, 2), 0.5), 0.0, draws).faults
    for number in (1, 2, 3):
        assert machine.receive(2, Message(EXCHANGE, (number, 2), 0.5), 0.0, draws).faults
    assert not machine.receive(2, Message(SETTLED), 0.0, draws).faults
    assert machine.receive(2, Message(EXCHANGE, (4, 2), 0.5), 0.0, draws).faults, "it had settled"
