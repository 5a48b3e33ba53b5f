from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.protocols import protocol
from p2pdp.protocols.gossip.plan import (
    ACTIVATIONS,
    EXCHANGE,
    PAIRS,
    ROUNDS,
    SETTLED,
    SKIPPED,
    GossipPlan,
    check_gossip,
    is_state,
)
from p2pdp.tasks.inputs import RealInputs
from p2pdp.topology.graphs import complete_graph
from tests.support.fault_worlds import prepared
from tests.support.gossip_specs import gossip
from tests.support.gossip_world import plan_of

PLAN = plan_of(complete_graph(4), 5)


@pytest.mark.parametrize(
    ("kind", "fields", "value", "wrong"),
    [
        (EXCHANGE, (1, 3), 0.5, None),
        (EXCHANGE, (5, 1), -0.5, None),
        (EXCHANGE, (0, 3), 0.5, "malformed"),
        (EXCHANGE, (6, 3), 0.5, "malformed"),
        (EXCHANGE, (1, 4), 0.5, "malformed"),
        (EXCHANGE, (1, 0), 0.5, "malformed"),
        (EXCHANGE, (True, 3), 0.5, "malformed"),
        (EXCHANGE, (1,), 0.5, "malformed"),
        (EXCHANGE, (1, 3), 1, "bad_value"),
        (EXCHANGE, (1, 3), None, "malformed"),
        (EXCHANGE, (1, 3), math.nan, "bad_value"),
        (EXCHANGE, (1, 3), math.inf, "bad_value"),
        (SKIPPED, (2,), None, None),
        (SKIPPED, (6,), None, "malformed"),
        (SKIPPED, (2,), 0.0, "malformed"),
        (SETTLED, (), None, None),
        (SETTLED, (1,), None, "malformed"),
        (SETTLED, (), 1.0, "malformed"),
        (messages.FINISHED, (), None, None),
        (messages.FINISHED, (), 0.25, None),
        (messages.FINISHED, (), math.nan, "bad_value"),
        (messages.FINISHED, (1,), None, "malformed"),
    ],
)
def test_the_form_of_messages(kind: str, fields: tuple[object, ...], value: object, wrong: str | None) -> None:
    message = Message(kind, fields, value)
    assert (ROUNDS.problem(message) or check_gossip(PLAN, message)) == wrong


def test_states_are_finite_floats_of_the_right_shape() -> None:
    pairs = replace(PLAN, shape=(2,))
    assert is_state(np.array([0.0, 1.0]), pairs)
    assert not is_state(np.array([0.0, math.inf]), pairs)
    assert not is_state(np.array([0.0, math.nan]), pairs)
    assert not is_state(np.array([0, 1]), pairs)
    assert not is_state(np.array([0.0]), pairs)
    assert not is_state(0.0, pairs)


@pytest.mark.parametrize("terms", ["rounds = 6", "rounds = 6\naccelerated = true"])
def test_no_state_that_is_taken_stops_its_receiver(terms: str) -> None:
    run, _, _ = prepared(gossip(3, "path", terms))
    plan: GossipPlan = run.plan
    draws: Any = SimpleNamespace(noise=lambda _mechanism, shape: np.ones(shape, dtype=np.int64) if shape else 1)
    machine = run.protocol.machine(plan, 1, (0, 2), RealInputs([0.5]))
    assert machine.start(0.0, draws).sends
    for number in range(1, plan.rounds + 1):
        for peer, value in ((0, plan.state_max), (2, plan.state_max * (-1.0) ** number)):
            message = Message(EXCHANGE, (number, 1), value)
            assert check_gossip(plan, message) is None
            step = machine.receive(peer, message, 0.0, draws)
            assert all(abs(send.message.value or 0.0) < math.inf for send in step.sends)
    beyond = Message(EXCHANGE, (1, 1), math.nextafter(plan.state_max, math.inf))
    assert check_gossip(plan, beyond) == "bad_value"


def test_what_noise_there_is() -> None:
    assert PLAN.mechanisms == ()
    noisy = plan_of(complete_graph(4), 5, noise=Mechanism("gaussian", 4.0), message_noise=Mechanism("gaussian", 2.0))
    assert noisy.mechanisms == (Mechanism("gaussian", 4.0), Mechanism("gaussian", 2.0))
    assert plan_of(complete_graph(4), 5, grid_exponent=-3).step == 0.125
    assert PLAN.needed == 1
    assert PLAN.starts == ()


def test_rounds_and_pairs_have_states_of_their_own_forms() -> None:
    of_a_round, of_an_activation = Message(EXCHANGE, (3, 2), 0.5), Message(EXCHANGE, (3,), 0.5)
    assert (ROUNDS.problem(of_a_round), ROUNDS.problem(of_an_activation)) == (None, "malformed")
    assert (PAIRS.problem(of_a_round), PAIRS.problem(of_an_activation)) == ("malformed", None)
    assert ROUNDS.step_of(of_a_round) == PAIRS.step_of(of_an_activation) == 3


def test_each_protocol_of_gossip_has_the_messages_of_its_machine() -> None:
    assert protocol("gossip.average").messages is protocol("gossip.sgd").messages is ROUNDS
    assert protocol("gossip.randomized").messages is PAIRS
    common = {one.name for one in COMMON}
    assert {one.name for one in ROUNDS} - common == {EXCHANGE, SKIPPED, SETTLED}
    assert {one.name for one in PAIRS} - common == {EXCHANGE, ACTIVATIONS}


def test_nothing_of_gossip_is_in_custody_and_a_closed_peer_misses_no_state() -> None:
    assert not any(one.custody for table in (ROUNDS, PAIRS) for one in table if COMMON.get(one.name) is None)
    assert {EXCHANGE, SKIPPED, SETTLED} <= ROUNDS.droppable
    assert ACTIVATIONS not in PAIRS.droppable
