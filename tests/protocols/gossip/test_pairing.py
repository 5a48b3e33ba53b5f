from __future__ import annotations

from collections import deque
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import NOTHING, Message, Step
from p2pdp.protocols.gossip.pairing import (
    PART_MAX,
    Pairing,
    PairPlan,
    activation_messages,
    check_pairing,
    draw_activations,
)
from p2pdp.protocols.gossip.plan import ACTIVATIONS, EXCHANGE, PAIRS
from p2pdp.topology.graphs import complete_graph
from tests.support.gossip_world import NO_NOISE, PATIENCE_S, Noise, Value, shared

Pair = tuple[int, int]


class Chances:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing is kept secret with it

    def choice(self, options: int) -> int:
        return self._random.randrange(options)


def plan(n: int, activations: int, **more: Any) -> PairPlan:
    terms: dict[str, Any] = {"noise": NO_NOISE, "message_noise": None, "shape": (), "grid_exponent": 0}
    terms |= {"publish": "none", "patience_s": PATIENCE_S, "gap": 0.1, "weights": "metropolis", "degree_max": n - 1}
    return PairPlan(n=n, activations=activations, **(terms | more))


class World:
    def __init__(self, pairs: list[Pair], values: list[float], seed: int, **more: Any) -> None:
        n = len(values)
        self.plan = plan(n, max(1, len(pairs)), **more)
        self.random = Random(seed)  # noqa: S311 - nothing is kept secret with it
        self.draws = [Noise(user, None, user) for user in range(n)]
        everybody = range(n)
        self.machines = [
            Pairing(self.plan, user, [peer for peer in everybody if peer != user], Value(values[user]))
            for user in everybody
        ]
        self.links: dict[Pair, deque[Message]] = {}
        self.final: dict[int, float] = {}
        self.out: set[int] = set()
        self.now_s = 0.0
        for user, told in enumerate(activation_messages(pairs, n)):
            self.links[BOOTSTRAP, user] = deque([Message(messages.GO), *told])

    def act(self, user: int, step: Step) -> None:
        assert not step.faults
        for send in step.sends:
            if send.to == user:
                assert user not in self.final
                self.final[user] = send.message.value
                assert self.machines[user].receive(user, send.message, 0.0, self.draws[user]) == NOTHING
            elif send.to != CURATOR:
                assert check_pairing(self.plan, send.message) is None
                self.links.setdefault((user, send.to), deque()).append(send.message)

    def deliver(self) -> bool:
        links = [link for link, queue in self.links.items() if queue and link[1] not in self.out]
        if not links:
            return False
        sender, user = links[self.random.randrange(len(links))]
        message = self.links[sender, user].popleft()
        machine, draws = self.machines[user], self.draws[user]
        if message.type == messages.GO:
            self.act(user, machine.start(self.now_s, draws))
        elif sender not in self.out:
            self.act(user, machine.receive(sender, message, self.now_s, draws))
        return True

    def exclude(self, peer: int) -> None:
        self.out.add(peer)
        for user, machine in enumerate(self.machines):
            if user not in self.out:
                self.act(user, machine.excluded(peer, self.now_s, self.draws[user]))


def drawn(n: int, count: int, seed: int) -> list[Pair]:
    edges = [(u, v) for u in range(n) for v in range(u + 1, n)]
    return draw_activations(edges, [Fraction(1, n)] * len(edges), count, Chances(seed))  # type: ignore[arg-type]


@given(n=st.integers(2, 6), count=st.integers(0, 40), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_each_activation_makes_the_mean_of_its_ends_in_order(n: int, count: int, seed: int) -> None:
    """[CEBM22, Algorithm 2], whatever the order in which messages come."""
    pairs = drawn(n, count, seed)
    values = np.random.default_rng(seed).normal(size=n)
    world = World(pairs, values.tolist(), seed)
    while world.deliver():
        pass
    expected = values.copy()
    for one, other in pairs:
        expected[one] = expected[other] = (expected[one] + expected[other]) * 0.5
    assert [world.final[user] for user in range(n)] == expected.tolist()


@given(n=st.integers(3, 6), gone=st.integers(0, 5), after=st.integers(0, 120), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_with_somebody_who_is_out_activations_are_void(n: int, gone: int, after: int, seed: int) -> None:
    world = World(drawn(n, 30, seed), [float(user) for user in range(n)], seed)
    for _ in range(after):
        world.deliver()
    world.exclude(gone % n)
    while world.deliver():
        pass
    assert set(world.final) >= set(range(n)) - {gone % n}
    assert all(0.0 <= value <= n - 1 for value in world.final.values())


@given(n=st.integers(2, 6), count=st.integers(0, 40), seed=st.integers(0, 10**6), after=st.integers(0, 60))
@settings(max_examples=60)
def test_noise_of_pairs_cancels_and_none_is_left_over_of_somebody_who_met_nobody(
    n: int, count: int, seed: int, after: int
) -> None:
    gone = seed % (n + 1)  # n is nobody
    pairs = [pair for pair in drawn(n, count, seed) if gone not in pair]
    values = np.random.default_rng(seed).normal(size=n)
    world = World(pairs, values.tolist(), seed, pair_noise=Mechanism("gaussian", 2.0**22), grid_exponent=-20)
    for _ in range(after):
        world.deliver()
    before = dict(world.final)
    if gone < n:
        world.exclude(gone)
    while world.deliver():
        pass
    others = [user for user in range(n) if user != gone]
    if gone == n or not set(before) & set(others):
        found = [world.final[user] for user in others]
        assert np.mean(found) == pytest.approx(np.mean(values[others]), abs=1e-8)
        if not pairs and gone == n:
            assert found == pytest.approx(values + shared(world.plan, complete_graph(n), 0), abs=1e-9)


def test_who_waits_in_vain_says_nothing() -> None:
    world = World([(0, 1)], [0.0, 1.0], 0)
    for message in list(world.links[BOOTSTRAP, 0]):
        machine = world.machines[0]
        step = machine.start(0.0, world.draws[0]) if message.type == messages.GO else None
        world.act(0, step or machine.receive(BOOTSTRAP, message, 0.0, world.draws[0]))
    assert world.machines[0].wake(9 * PATIENCE_S, world.draws[0]) == NOTHING


def test_message_noise_is_on_what_is_sent_only() -> None:
    world = World([(0, 1)], [0.0, 1.0], 0, message_noise=Mechanism("gaussian", 2.0**20), grid_exponent=-20)
    while world.deliver():
        pass
    noise = [draws.drawn[0] * 2.0**-20 for draws in world.draws]
    assert world.final == {0: (1.0 + noise[1]) * 0.5, 1: (1.0 + noise[0]) * 0.5}


def test_intensities_are_kept() -> None:
    edges = [(0, 1), (1, 2), (0, 2)]
    found = draw_activations(edges, [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], 60_000, Chances(1))  # type: ignore[arg-type]
    for edge, share in zip(edges, (1 / 2, 1 / 3, 1 / 6), strict=True):
        assert found.count(edge) / 60_000 == pytest.approx(share, abs=0.015)


def test_long_lists_are_told_in_parts_and_users_without_any_are_told_so() -> None:
    told = activation_messages([(0, 1)] * (2 * PART_MAX + 1), 3)
    assert [len(message.fields[2]) for message in told[0]] == [PART_MAX, PART_MAX, 1]
    assert told[2] == [Message(ACTIVATIONS, (0, 1, []))]


@pytest.mark.parametrize(
    ("kind", "fields", "value", "wrong"),
    [
        (EXCHANGE, (1,), 0.5, None),
        (EXCHANGE, (4,), 0.5, "malformed"),
        (EXCHANGE, (1, 2), 0.5, "malformed"),
        (EXCHANGE, (1,), None, "malformed"),
        (ACTIVATIONS, (0, 1, [[1, 2]]), None, None),
        (ACTIVATIONS, (0, 1, [[1, 3]]), None, "malformed"),
        (ACTIVATIONS, (0, 1, [[0, 2]]), None, "malformed"),
        (ACTIVATIONS, (0, 1, [[1]]), None, "malformed"),
        (ACTIVATIONS, (0, 1, [3]), None, "malformed"),
        (ACTIVATIONS, (0, 1), None, "malformed"),
        (messages.FINISHED, (), None, None),
        (messages.FINISHED, (2,), None, "malformed"),
    ],
)
def test_the_form_of_messages(kind: str, fields: tuple[object, ...], value: object, wrong: str | None) -> None:
    message = Message(kind, fields, value)
    assert (PAIRS.problem(message) or check_pairing(plan(3, 3), message)) == wrong


def test_what_does_not_belong_is_a_fault() -> None:
    machine, draws = Pairing(plan(3, 3), 0, [1], Value(0.0)), Noise(0)
    assert not machine.start(0.0, draws).faults
    assert machine.start(0.0, draws) == NOTHING
    assert machine.receive(2, Message(EXCHANGE, (1,), 0.5), 0.0, draws).faults
    assert machine.receive(1, Message(ACTIVATIONS, (0, 1, [])), 0.0, draws).faults
    assert machine.receive(BOOTSTRAP, Message(ACTIVATIONS, (1, 2, [])), 0.0, draws).faults
    assert not machine.receive(BOOTSTRAP, Message(ACTIVATIONS, (0, 1, [[2, 1]])), 0.0, draws).faults
    assert machine.receive(1, Message(EXCHANGE, (1,), 0.5), 0.0, draws).faults, "not ours"
    assert not machine.receive(1, Message(EXCHANGE, (2,), 0.5), 0.0, draws).faults
    assert machine.receive(1, Message(EXCHANGE, (2,), 0.5), 0.0, draws).faults, "twice"
