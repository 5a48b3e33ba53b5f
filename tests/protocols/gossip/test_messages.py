from __future__ import annotations

from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.protocols import protocol
from p2pdp.protocols.gossip.messages import ACTIVATIONS, EXCHANGE, PAIRS, ROUNDS, SETTLED, SKIPPED


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
